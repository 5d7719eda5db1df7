import type { Area } from '../area.ts'
import { resources } from './nouns.ts'

/** Disks, partitions, volumes and what is mounted. */
export const block: Area = { name: 'block', resources }
