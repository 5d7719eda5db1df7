import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { DiscoveredVolume } from '../resources/discovered-volume.ts'
import { SystemDisk } from '../resources/system-disk.ts'
import { systemDiskOf } from '../volumes/view.ts'

/** Publishes the disk with the system's partitions. */
export const observeSystemDisk: Controller = defineController({
  name: 'block.SystemDiskController',
  effects: 'none',
  inputs: { volume: weak(DiscoveredVolume) },
  outputs: { systemDisk: exclusive(SystemDisk) },
  reconcile({ volume, systemDisk }) {
    const id = systemDiskOf(volume.list())
    if (id) systemDisk.put('system-disk', { diskID: id, devPath: `/dev/${id}` })
  },
})
