import { type Controller, defineController, exclusive, strong, weak } from '../../../cosi/controller.ts'
import { MountRequest } from '../resources/mount-request.ts'
import { VolumeMountRequest } from '../resources/volume-mount.ts'
import { VolumeStatus } from '../resources/volume-status.ts'

/** Merges all mount requests for a volume into one: read-only if no user writes, and with each restriction that any user requests. */
export const mergeMountRequests: Controller = defineController({
  name: 'block.MountRequestController',
  effects: 'none',
  inputs: { demand: strong(VolumeMountRequest), volume: weak(VolumeStatus) },
  outputs: { request: exclusive(MountRequest) },
  reconcile({ demand, volume, request }) {
    const demands = Map.groupBy(demand.list(), ({ spec }) => spec.volumeID)
    for (const [volumeID, all] of demands) {
      const status = volume.get(volumeID)?.spec
      if (!status) continue
      const sorted = all.sort((a, b) => (a.metadata.id < b.metadata.id ? -1 : 1))
      const specs = sorted.map(({ spec }) => spec)
      request.put(volumeID, {
        volumeID,
        parentID: status.parentID ?? '',
        readOnly: specs.every(({ readOnly }) => readOnly),
        detached: false,
        ...(specs.some(({ disableAccessTime }) => disableAccessTime) && { disableAccessTime: true }),
        ...(specs.some(({ secure }) => secure) && { secure: true }),
        requesters: specs.map(({ requester }) => requester),
        requesterIDs: sorted.map(({ metadata }) => metadata.id),
      })
    }
  },
})
