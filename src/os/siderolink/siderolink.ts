import type { Area } from '../area.ts'
import { resources } from './resource-types.ts'

/** The tunnel to a management service. */
export const siderolink: Area = { name: 'siderolink', resources }
