import type { Area } from '../area.ts'
import { resources } from './nouns.ts'

/** The mesh between nodes. */
export const kubespan: Area = { name: 'kubespan', resources }
