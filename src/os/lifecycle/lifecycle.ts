import type { Area } from '../area.ts'
import { refusedInContainer } from './api/metal.ts'
import { powerMethods } from './api/power.ts'
import { observeBootPhases } from './controllers/boot-phase.ts'
import { findNoVolumes } from './controllers/no-volumes.ts'
import { requestState } from './controllers/state-mount.ts'
import { BootPhase } from './resources/boot-phase.ts'

/** How the machine begins and ends. */
export const lifecycle: Area = {
  name: 'lifecycle',
  resources: [BootPhase],
  controllers: ({ sequencer, kernel }) => [
    observeBootPhases(sequencer.phases),
    ...(kernel.mode === 'container' ? [] : [requestState, findNoVolumes]),
  ],
  methods: (machine) => [...powerMethods(machine), ...(machine.kernel.mode === 'container' ? refusedInContainer : [])],
}
