import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import { DevicesStatus } from '../../runtime/resources/devices-status.ts'

/** Nothing is looked for on disks yet: once devices are there, it is known that no volume is. */
export const findNoVolumes: Controller = defineController({
  name: 'lifecycle.NoVolumesController',
  inputs: { devices: weak(DevicesStatus, { id: 'devices' }) },
  outputs: { volumes: exclusive(VolumeStatus) },
  reconcile({ devices, volumes }) {
    if (!devices.get('devices')?.spec.ready) return
    for (const id of ['META', 'STATE', 'EPHEMERAL']) volumes.put(id, { phase: 'missing', type: 'partition' })
  },
})
