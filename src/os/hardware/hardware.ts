import type { Area } from '../area.ts'
import { resources } from './nouns.ts'

/** What the machine is built of. */
export const hardware: Area = { name: 'hardware', resources }
