import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { duration } from '../../values.ts'

/** Desired settings of the hardware watchdog. */
export const WatchdogTimerConfig = defineResource({
  type: 'WatchdogTimerConfigs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'WatchdogTimerConfig',
  columns: { Device: '{.device}', Timeout: '{.timeout}' },
  spec: v.object({ device: v.string(), timeout: duration }),
})

/** The hardware watchdog in use. */
export const WatchdogTimerStatus = defineResource({
  type: 'WatchdogTimerStatuses.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'WatchdogTimerStatus',
  columns: { Device: '{.device}', Timeout: '{.timeout}' },
  spec: v.object({ device: v.string(), timeout: duration, feedInterval: duration }),
})
