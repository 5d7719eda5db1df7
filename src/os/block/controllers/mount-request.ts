import { type Controller, defineController, exclusive, strong, weak } from '../../../cosi/controller.ts'
import { MountRequest } from '../resources/mount-request.ts'
import { VolumeMountRequest } from '../resources/volume-mount.ts'
import { VolumeStatus } from '../resources/volume-status.ts'

/** One request a volume out of all who want it; it is read-only when nobody writes, and as safe as one of them asks. */
export const mergeMountRequests: Controller = defineController({
  name: 'block.MountRequestController',
  inputs: { wish: strong(VolumeMountRequest), volume: weak(VolumeStatus) },
  outputs: { request: exclusive(MountRequest) },
  reconcile({ wish, volume, request }) {
    const wishes = Map.groupBy(wish.list(), ({ spec }) => spec.volumeID)
    for (const [volumeID, all] of wishes) {
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
