import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { VolumeLifecycle } from '../../block/resources/volume-lifecycle.ts'
import { VolumeMountRequest } from '../../block/resources/volume-mount.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import { mountId, mountRequest, volumeLifecycleId } from '../volumes.ts'

/** STATE is mounted as soon as there is one, and for as long as volumes are in use: what the machine knows of itself lies there. */
export const requestState: Controller = defineController({
  name: 'lifecycle.StateMountController',
  inputs: { lifecycle: weak(VolumeLifecycle, { id: volumeLifecycleId }), state: weak(VolumeStatus, { id: 'STATE' }) },
  outputs: { request: shared(VolumeMountRequest) },
  reconcile({ lifecycle, state, request }) {
    if (lifecycle.get(volumeLifecycleId) && state.get('STATE')?.spec.phase === 'ready') request.put(mountId('STATE'), mountRequest('STATE'))
  },
})
