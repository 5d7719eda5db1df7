import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { MountStatus } from '../../block/resources/mount-status.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import { RuntimeMountStatus } from '../resources/mount-status.ts'

/** Mounted partitions and disks by the id of their volume, in the older form that clients read. */
export const observeMountStatus: Controller = defineController({
  name: 'runtime.MountStatusController',
  effects: 'none',
  inputs: { mounts: weak(MountStatus), volumes: weak(VolumeStatus) },
  outputs: { statuses: exclusive(RuntimeMountStatus) },
  reconcile({ mounts, volumes, statuses }) {
    for (const { spec: mount } of mounts.list()) {
      const { volumeID } = mount.spec
      const type = volumes.get(volumeID)?.spec.type
      if (type !== 'partition' && type !== 'disk') continue
      const { encryptionProvider = 'none' } = mount
      const encrypted = encryptionProvider !== 'none'
      statuses.put(volumeID, {
        source: mount.source,
        target: mount.target,
        filesystemType: mount.filesystem,
        options: [],
        encrypted,
        ...(encrypted && { encryptionProviders: [encryptionProvider] }),
      })
    }
  },
})
