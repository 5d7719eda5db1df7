import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { BlockDevice } from '../resources/block-device.ts'
import { Disk } from '../resources/disk.ts'
import { SystemDisk } from '../resources/system-disk.ts'
import { blockDevices, diskOf, type SysFiles } from '../sysfs.ts'

const interval = 15_000

/** The block devices the kernel has: looked for at the start, and again from time to time. */
export const observeDevices = ({ files }: { files: SysFiles }): Controller =>
  defineController({
    name: 'block.DevicesController',
    inputs: {},
    outputs: { device: exclusive(BlockDevice) },
    reconcile({ device, wakeIn }) {
      for (const [name, spec] of blockDevices(files)) device.put(name, spec)
      wakeIn(interval)
    },
  })

/** Those of them that are whole disks. */
export const observeDisks = ({ files }: { files: SysFiles }): Controller =>
  defineController({
    name: 'block.DisksController',
    inputs: { device: weak(BlockDevice) },
    outputs: { disk: exclusive(Disk) },
    reconcile({ device, disk }) {
      for (const { metadata, spec } of device.list()) {
        const found = diskOf(files, metadata.id, spec)
        if (found) disk.put(metadata.id, found)
      }
    },
  })

/** The disk that holds the machine's own partitions, told by the one named META. */
export const observeSystemDisk: Controller = defineController({
  name: 'block.SystemDiskController',
  inputs: { device: weak(BlockDevice) },
  outputs: { systemDisk: exclusive(SystemDisk) },
  reconcile({ device, systemDisk }) {
    const parent = device.list().find(({ spec }) => spec.partitionName === 'META')?.spec.parent
    if (parent) systemDisk.put('system-disk', { diskID: parent, devPath: `/dev/${parent}` })
  },
})
