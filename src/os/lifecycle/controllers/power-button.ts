import { type Controller, defineController } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { shutdown } from '../stop.ts'

/** Whoever presses the power button wants the machine to go down in good order; who holds it, at once, which the hardware sees to. */
export const heedPowerButton = (machine: Machine): Controller =>
  defineController({
    name: 'lifecycle.PowerButtonController',
    inputs: {},
    outputs: {},
    start({ signal, log }) {
      void (async () => {
        try {
          for await (const _ of machine.kernel.acpi.watchPowerButton(signal)) {
            log.info('power button pressed, the machine shuts down')
            void machine.sequencer.run('shutdown', shutdown(machine)).catch((error) => log.warn('shutdown was not begun', { error }))
          }
        } catch (error) {
          log.info('the power button is not heeded', { error })
        }
      })()
    },
    reconcile() {},
  })
