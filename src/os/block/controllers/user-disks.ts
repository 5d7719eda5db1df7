import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import { parseByteSize } from '../../../document/quantity.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { UserDiskConfigStatus } from '../resources/user-disk-config-status.ts'
import { VolumeConfig } from '../resources/volume-config.ts'
import { VolumeMountRequest, VolumeMountStatus } from '../resources/volume-mount.ts'
import { mebibyte } from '../sizes.ts'
import { partitionSpec } from '../volumes/declaration.ts'
import { folderMount } from '../volumes/folders.ts'

const requester = 'block.UserDiskConfigController'

/** Provisioned after all other volumes, disk by disk, in partition order. */
const firstWave = 1_000_000

/** Declares the volumes of `machine.disks`: partitions of a named disk, by number. */
export const configUserDisks: Controller = defineController({
  name: requester,
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), mounted: weak(VolumeMountStatus) },
  outputs: { volume: shared(VolumeConfig), request: shared(VolumeMountRequest), status: exclusive(UserDiskConfigStatus) },
  reconcile({ config, mounted, volume, request, status }) {
    const read = declared(config.get('v1alpha1'))
    if (!read) return
    const ids: string[] = []
    for (const { device = '', partitions = [] } of read.machine.disks ?? [])
      for (const [place, { size = '0', mountpoint = '' }] of partitions.entries()) {
        const id = `${device}-${place + 1}`
        const match = `disk.dev_path == ${JSON.stringify(device)} || ${JSON.stringify(device)} in disk.symlinks`
        const bytes = parseByteSize(size) ?? 0
        const sizes = bytes > 0 ? { minSize: bytes, maxSize: bytes, grow: false } : { minSize: mebibyte, grow: false }
        const onVar = mountpoint.startsWith('/var/')
        volume.put(id, {
          type: 'partition',
          ...(onVar && { parentId: 'EPHEMERAL' }),
          provisioning: {
            wave: firstWave + place,
            diskSelector: { match },
            partitionSpec: partitionSpec('', sizes),
            filesystemSpec: { type: 'xfs' },
          },
          locator: { match: `volume.partition_index == ${place + 1}u`, diskMatch: match },
          mount: folderMount({ target: mountpoint, ...(onVar && { parent: 'EPHEMERAL' }) }),
        })
        request.put(id, { volumeID: id, requester, readOnly: false, detached: false, disableAccessTime: false, secure: true })
        ids.push(id)
      }
    status.put('user-disks', { ready: ids.every((id) => mounted.get(id)), tornDown: false })
  },
})
