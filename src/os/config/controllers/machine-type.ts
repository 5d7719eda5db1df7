import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { machineType } from '../documents/v1alpha1.ts'
import { configOf } from '../parse.ts'
import { MachineConfig } from '../resources/machine-config.ts'
import { MachineType } from '../resources/machine-type.ts'

/** The machine type in the configuration. */
export const configMachineType: Controller = defineController({
  name: 'config.MachineTypeController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { type: exclusive(MachineType) },
  reconcile({ config, type }) {
    const document = configOf(config.get('v1alpha1'))?.v1alpha1
    if (document) type.put('machine-type', machineType(document))
  },
})
