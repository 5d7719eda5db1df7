import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { BlockDevice } from '../resources/block-device.ts'
import { BlockSymlink } from '../resources/block-symlink.ts'
import { DiscoveryRefreshRequest } from '../resources/discovery-refresh.ts'
import { Disk } from '../resources/disk.ts'
import { blockDevices, diskOf, type SysFiles } from '../sysfs.ts'

/** The kernel tells of every change; this often is looked all the same. */
const interval = 60_000

/** The block devices the kernel has. The generation of one goes up whenever the kernel tells of it: it is to be looked at anew. */
export const observeDevices = ({ files, uevent }: { files: SysFiles; uevent: Kernel['uevent'] }): Controller => {
  const changes = new Map<string, number>()
  return defineController({
    name: 'block.DevicesController',
    // Whoever asks for everything to be read anew wants to see every device there is.
    inputs: { request: weak(DiscoveryRefreshRequest) },
    outputs: { device: exclusive(BlockDevice) },
    reconcile({ device, background, wakeIn }) {
      for (const [name, spec] of blockDevices(files)) device.put(name, { ...spec, generation: spec.generation + (changes.get(name) ?? 0) })
      background('follow devices', async (signal, wake) => {
        for await (const names of uevent.watchDevices('block', { signal })) {
          for (const name of names ?? []) changes.set(name, (changes.get(name) ?? 0) + 1)
          wake()
        }
      })
      wakeIn(interval)
    },
  })
}

/** Those of them that are whole disks, with the names udevd gave them. */
export const observeDisks = ({ files }: { files: SysFiles }): Controller =>
  defineController({
    name: 'block.DisksController',
    inputs: { device: weak(BlockDevice), symlink: weak(BlockSymlink) },
    outputs: { disk: exclusive(Disk) },
    reconcile({ device, symlink, disk }) {
      for (const { metadata, spec } of device.list()) {
        const found = diskOf(files, metadata.id, spec)
        const symlinks = symlink.get(metadata.id)?.spec.paths ?? []
        if (found) disk.put(metadata.id, { ...found, ...(symlinks.length > 0 && { symlinks }) })
      }
    },
  })
