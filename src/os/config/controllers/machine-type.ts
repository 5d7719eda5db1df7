import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { declared } from '../declared.ts'
import { MachineConfig } from '../resources/machine-config.ts'
import { MachineType } from '../resources/machine-type.ts'

/** What the configuration makes of this machine. */
export const configMachineType: Controller = defineController({
  name: 'config.MachineTypeController',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { type: exclusive(MachineType) },
  reconcile({ config, type }) {
    const found = declared(config.get('v1alpha1'))
    if (found) type.put('machine-type', found.machine.type ?? 'worker')
  },
})
