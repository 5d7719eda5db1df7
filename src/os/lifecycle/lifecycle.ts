import type { Area } from '../area.ts'
import { refusedInContainer } from './api/metal.ts'
import { powerMethods } from './api/power.ts'
import { observeBootPhases } from './controllers/boot-phase.ts'
import { BootPhase } from './resources/boot-phase.ts'

/** How the machine begins and ends. */
export const lifecycle: Area = {
  name: 'lifecycle',
  resources: [BootPhase],
  controllers: ({ sequencer }) => [observeBootPhases(sequencer.phases)],
  methods: (machine) => [...powerMethods(machine), ...(machine.kernel.mode === 'container' ? refusedInContainer : [])],
}
