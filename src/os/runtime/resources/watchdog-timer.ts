import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { duration } from '../../values.ts'

/** How the hardware watchdog should run. */
export const WatchdogTimerConfig = defineResource({
  type: 'WatchdogTimerConfigs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'WatchdogTimerConfig',
  columns: { Device: '{.device}', Timeout: '{.timeout}' },
  spec: v.object({ device: v.string(), timeout: duration }),
})

/** How the hardware watchdog runs. */
export const WatchdogTimerStatus = defineResource({
  type: 'WatchdogTimerStatuses.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'WatchdogTimerStatus',
  columns: { Device: '{.device}', Timeout: '{.timeout}' },
  spec: v.object({ device: v.string(), timeout: duration, feedInterval: duration }),
})
