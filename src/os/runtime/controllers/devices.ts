import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { DevicesStatus } from '../resources/devices-status.ts'
import { Service } from '../resources/service.ts'

/** Whether devices have been found and named: a container gets its own from the host, elsewhere udevd must have run. */
export const observeDevicesReady = ({ mode }: Pick<Kernel, 'mode'>): Controller =>
  defineController({
    name: 'runtime.DevicesStatusController',
    inputs: { services: weak(Service, { id: 'udevd' }) },
    outputs: { status: exclusive(DevicesStatus) },
    reconcile({ services, status }) {
      const udevd = services.get('udevd')?.spec
      if (mode === 'container' || (udevd?.running && udevd.healthy)) status.put('devices', { ready: true })
    },
  })
