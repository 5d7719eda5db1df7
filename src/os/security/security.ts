import type { Area } from '../area.ts'
import { resources } from './nouns.ts'

/** What images must prove. */
export const security: Area = { name: 'security', resources }
