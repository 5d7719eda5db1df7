import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { formatDuration, milliseconds } from '../../../wire/duration.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { WatchdogTimerConfig as WatchdogTimerDocument } from '../documents/watchdog-timer.ts'
import { WatchdogTimerConfig, WatchdogTimerStatus } from '../resources/watchdog-timer.ts'

const id = 'timer'

/** The default timeout, in milliseconds. */
const usualTimeout = 60_000

/** Number of feedings within one timeout. */
const feedings = 3

/** The watchdog's settings from the configuration. */
export const configWatchdog: Controller = defineController({
  name: 'runtime.WatchdogTimerConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { timer: exclusive(WatchdogTimerConfig) },
  reconcile({ config, timer }) {
    const document = find(declared(config.get('v1alpha1')), WatchdogTimerDocument)
    if (!document?.device) return
    timer.put(id, { device: document.device, timeout: formatDuration((milliseconds(document.timeout) || usualTimeout) * 1e6) })
  },
})

type Dependencies = { readonly watchdog: Pick<Kernel['watchdog'], 'openWatchdog'> }

/**
 * Feeds the watchdog from init's own event loop: when init hangs, the hardware resets the machine. Disarms it when it is no longer
 * configured.
 */
export const applyWatchdog = ({ watchdog }: Dependencies): Controller => {
  let open: { device: string; timeout: string; dog: ReturnType<Dependencies['watchdog']['openWatchdog']> } | undefined
  return defineController({
    name: 'runtime.WatchdogTimerController',
    inputs: { timer: weak(WatchdogTimerConfig, { id }) },
    outputs: { status: exclusive(WatchdogTimerStatus) },
    reconcile({ timer, status, wakeIn, log }) {
      const desired = timer.get(id)?.spec
      if (open && (open.device !== desired?.device || open.timeout !== desired.timeout)) {
        open.dog.disarm()
        log.info('watchdog stopped', { device: open.device })
        open = undefined
      }
      if (!desired) return
      if (!open) {
        open = { ...desired, dog: watchdog.openWatchdog(desired.device, Math.ceil(milliseconds(desired.timeout) / 1000)) }
        log.info('watchdog started', { device: desired.device, timeout: `${open.dog.timeout}s` })
      } else open.dog.feed()
      const timeout = open.dog.timeout * 1000
      status.put(id, {
        device: desired.device,
        timeout: formatDuration(timeout * 1e6),
        feedInterval: formatDuration((timeout / feedings) * 1e6),
      })
      wakeIn(timeout / feedings)
    },
  })
}
