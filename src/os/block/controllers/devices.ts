import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { BlockDevice } from '../resources/block-device.ts'
import { BlockSymlink } from '../resources/block-symlink.ts'
import { DiscoveryRefreshRequest } from '../resources/discovery-refresh.ts'
import { Disk } from '../resources/disk.ts'
import { blockDevices, diskOf, type SysFiles } from '../sysfs.ts'

/** Interval of a full rescan in milliseconds, in addition to kernel uevents. */
const interval = 60_000

/** Publishes the kernel's block devices. A uevent increments the device's generation, which triggers a new probe. */
export const observeDevices = ({ files, uevent }: { files: SysFiles; uevent: Kernel['uevent'] }): Controller => {
  const changes = new Map<string, number>()
  return defineController({
    name: 'block.DevicesController',
    effects: 'none',
    // A refresh request must cover every present device.
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

/** Publishes the whole disks among them, with their udev symlinks. */
export const observeDisks = ({ files }: { files: SysFiles }): Controller =>
  defineController({
    name: 'block.DisksController',
    effects: 'none',
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
