import { background } from '../../../cosi/background.ts'
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
      const follow = async () => {
        for await (const _ of machine.kernel.acpi.watchPowerButton(signal)) {
          log.info('power button pressed, the machine shuts down')
          background(() => machine.sequencer.run('shutdown', shutdown(machine)), log, 'shutdown failed')
        }
      }
      follow().catch((error) => log.info('the power button is not watched', { error })) // many machines have none
    },
    reconcile() {},
  })
