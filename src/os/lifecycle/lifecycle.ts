import type { Area } from '../area.ts'
import { powerMethods } from './api/power.ts'

/** How the machine begins and ends. */
export const lifecycle: Area = { name: 'lifecycle', resources: [], methods: powerMethods }
