import type { Area } from '../area.ts'
import { observeContainerVolumes } from './controllers/container-volumes.ts'
import { resources } from './nouns.ts'

/** Disks, partitions, volumes and what is mounted. */
export const block: Area = {
  name: 'block',
  resources,
  controllers: ({ kernel }) => (kernel.mode === 'container' ? [observeContainerVolumes(kernel)] : []),
}
