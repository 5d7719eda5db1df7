import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { VolumeLifecycle, volumeLifecycleId } from '../../block/resources/volume-lifecycle.ts'
import { mountId, mountRequest, VolumeMountRequest } from '../../block/resources/volume-mount.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'

/** Requests STATE, which holds the machine's own data, as soon as it exists and while volumes are in use. */
export const requestState: Controller = defineController({
  name: 'lifecycle.StateMountController',
  effects: 'none',
  inputs: { lifecycle: weak(VolumeLifecycle, { id: volumeLifecycleId }), state: weak(VolumeStatus, { id: 'STATE' }) },
  outputs: { request: shared(VolumeMountRequest) },
  reconcile({ lifecycle, state, request }) {
    if (lifecycle.get(volumeLifecycleId) && state.get('STATE')?.spec.phase === 'ready') request.put(mountId('STATE'), mountRequest('STATE'))
  },
})
