import { type Controller, defineController, exclusive, strong } from '../../../cosi/controller.ts'
import { MountStatus } from '../resources/mount-status.ts'
import { VolumeMountStatus } from '../resources/volume-mount.ts'

/** Publishes a VolumeMountStatus to each requester of a mounted volume. */
export const publishMounts: Controller = defineController({
  name: 'block.MountStatusController',
  inputs: { mounted: strong(MountStatus) },
  outputs: { status: exclusive(VolumeMountStatus) },
  reconcile({ mounted, status }) {
    for (const { spec } of mounted.list()) {
      const { volumeID, requesters, requesterIDs, disableAccessTime = false, secure = false } = spec.spec
      for (const [index, id] of requesterIDs.entries())
        status.put(id, {
          volumeID,
          requester: requesters[index] ?? '',
          target: spec.target,
          readOnly: spec.readOnly,
          detached: spec.detached,
          disableAccessTime,
          secure,
        })
    }
  },
})
