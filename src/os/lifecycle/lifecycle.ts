import type { Area } from '../area.ts'
import { refusedInContainer } from './api/metal.ts'
import { powerMethods } from './api/power.ts'
import { releaseMethods } from './api/release.ts'
import { observeBootPhases } from './controllers/boot-phase.ts'
import { observeBootedEntry } from './controllers/booted-entry.ts'
import { compareStarts } from './controllers/measurements.ts'
import { heedPowerButton } from './controllers/power-button.ts'
import { requestState } from './controllers/state-mount.ts'
import { dropUpgradeFallback } from './controllers/trial.ts'
import { BootPhase } from './resources/boot-phase.ts'
import { PCRChange } from './resources/pcr-change.ts'

/** The lifecycle area: boot, installation, upgrade, reset, shutdown. */
export const lifecycle: Area = {
  name: 'lifecycle',
  resources: [BootPhase, PCRChange],
  parts: (machine) => ({
    controllers: [
      observeBootPhases(machine.sequencer.phases),
      ...(machine.kernel.mode === 'container'
        ? []
        : [
            requestState,
            heedPowerButton(machine),
            observeBootedEntry(machine.kernel),
            dropUpgradeFallback(machine),
            compareStarts(machine),
          ]),
    ],
    methods: [...powerMethods(machine), ...(machine.kernel.mode === 'container' ? refusedInContainer : releaseMethods(machine))],
  }),
}
