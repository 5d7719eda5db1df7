import type { Area } from '../area.ts'
import { explain } from './api/explain.ts'

/** Why the machine or one of its resources is not ready; reads every other area. */
export const diagnosis: Area = {
  name: 'diagnosis',
  resources: [],
  parts: (machine) => ({
    methods: [explain(machine)],
  }),
}
