import type { Area } from '../area.ts'
import { refusedInContainer } from './api/metal.ts'
import { powerMethods } from './api/power.ts'

/** How the machine begins and ends. */
export const lifecycle: Area = {
  name: 'lifecycle',
  resources: [],
  methods: (machine) => [...powerMethods(machine), ...(machine.kernel.mode === 'container' ? refusedInContainer : [])],
}
