import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { declared, findAll } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { EnvironmentConfig } from '../documents/environment.ts'
import { Environment } from '../resources/environment.ts'

/** The variables that the operator sets for services; later documents take precedence. */
export const configEnvironment: Controller = defineController({
  name: 'runtime.EnvironmentController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { environment: exclusive(Environment) },
  reconcile({ config, environment }) {
    const given = declared(config.get('v1alpha1'))
    const documents = findAll(given, EnvironmentConfig)
    const variables: Record<string, string> = Object.assign({}, given?.machine.env, ...documents.map((document) => document.variables))
    environment.put('machined', { variables: Object.keys(variables).map((name) => `${name}=${variables[name]}`) })
  },
})
