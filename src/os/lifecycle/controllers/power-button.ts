import { background } from '../../../cosi/background.ts'
import { type Controller, defineController } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { shutdown } from '../stop.ts'

/** A short press of the power button starts a graceful shutdown. A long press cuts power in hardware. */
export const heedPowerButton = (machine: Machine): Controller =>
  defineController({
    name: 'lifecycle.PowerButtonController',
    inputs: {},
    outputs: {},
    start({ signal, log }) {
      const follow = async () => {
        for await (const _ of machine.kernel.acpi.watchPowerButton(signal)) {
          log.info('power button pressed, shutting down')
          background(() => machine.sequencer.run('shutdown', shutdown(machine)), log, 'shutdown failed')
        }
      }
      follow().catch((error) => log.info('power button unavailable', { error })) // many machines have none
    },
    reconcile() {},
  })
