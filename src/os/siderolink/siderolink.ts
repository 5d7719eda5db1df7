import type { Area } from '../area.ts'
import { resources } from './nouns.ts'

/** The tunnel to a management service. */
export const siderolink: Area = { name: 'siderolink', resources }
