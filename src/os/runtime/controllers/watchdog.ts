import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { formatSpan, milliseconds } from '../../../document/quantity.ts'
import { declared, find } from '../../config/declared.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { WatchdogTimerConfig as WatchdogTimerDocument } from '../documents/watchdog-timer.ts'
import { WatchdogTimerConfig, WatchdogTimerStatus } from '../resources/watchdog-timer.ts'

const id = 'timer'

/** Without a time of the configuration, in milliseconds. */
const usualTimeout = 60_000

/** It is fed so many times within its time. */
const feedings = 3

/** What the configuration wants of the watchdog. */
export const configWatchdog: Controller = defineController({
  name: 'runtime.WatchdogTimerConfigController',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { timer: exclusive(WatchdogTimerConfig) },
  reconcile({ config, timer }) {
    const wish = find(declared(config.get('v1alpha1')), WatchdogTimerDocument)
    if (!wish?.device) return
    timer.put(id, { device: wish.device, timeout: formatSpan((milliseconds(wish.timeout) || usualTimeout) * 1e6) })
  },
})

type Parts = { readonly watchdog: Pick<Kernel['watchdog'], 'openWatchdog'> }

/**
 * Keeps the watchdog fed from init's own loop: when init hangs, the hardware resets the machine. When the wish goes it
 * is put to rest.
 */
export const applyWatchdog = ({ watchdog }: Parts): Controller => {
  let open: { device: string; timeout: string; dog: ReturnType<Parts['watchdog']['openWatchdog']> } | undefined
  return defineController({
    name: 'runtime.WatchdogTimerController',
    inputs: { timer: weak(WatchdogTimerConfig, { id }) },
    outputs: { status: exclusive(WatchdogTimerStatus) },
    reconcile({ timer, status, wakeIn, log }) {
      const wish = timer.get(id)?.spec
      if (open && (open.device !== wish?.device || open.timeout !== wish.timeout)) {
        open.dog.disarm()
        log.info('watchdog put to rest', { device: open.device })
        open = undefined
      }
      if (!wish) return
      if (!open) {
        open = { ...wish, dog: watchdog.openWatchdog(wish.device, Math.ceil(milliseconds(wish.timeout) / 1000)) }
        log.info('watchdog started', { device: wish.device, timeout: `${open.dog.timeout}s` })
      } else open.dog.feed()
      const timeout = open.dog.timeout * 1000
      status.put(id, { device: wish.device, timeout: formatSpan(timeout * 1e6), feedInterval: formatSpan((timeout / feedings) * 1e6) })
      wakeIn(timeout / feedings)
    },
  })
}
