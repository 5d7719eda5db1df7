import type { Area } from '../area.ts'
import { disks, wipeRefused } from './api/disks.ts'
import { metaMethods } from './api/meta.ts'
import { observeContainerVolumes } from './controllers/container-volumes.ts'
import { observeDevices, observeDisks, observeSystemDisk } from './controllers/devices.ts'
import { resources } from './nouns.ts'

/** Disks, partitions, volumes and what is mounted. A container has volumes, but no disks of its own. */
export const block: Area = {
  name: 'block',
  resources,
  controllers: ({ kernel }) =>
    kernel.mode === 'container' ? [observeContainerVolumes(kernel)] : [observeDevices(kernel), observeDisks(kernel), observeSystemDisk],
  methods: ({ kernel, meta }) => (kernel.mode === 'container' ? [disks, wipeRefused] : [disks, ...metaMethods(meta)]),
}
