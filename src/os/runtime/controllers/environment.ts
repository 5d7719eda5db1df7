import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import { declared, findAll } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { EnvironmentConfig } from '../documents/environment.ts'
import { Environment } from '../resources/environment.ts'

/**
 * The variables that the operator sets for services: those of the kernel command line (`talos.environment=NAME=value`), then of the
 * configuration; later documents take precedence.
 */
export const configEnvironment = (commandLine: string): Controller =>
  defineController({
    name: 'runtime.EnvironmentController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
    outputs: { environment: exclusive(Environment) },
    reconcile({ config, environment }) {
      const given = declared(config.get('v1alpha1'))
      const documents = findAll(given, EnvironmentConfig)
      const variables: Record<string, string> = Object.assign(
        {},
        fromCommandLine(commandLine),
        given?.machine.env,
        ...documents.map((document) => document.variables),
      )
      environment.put('machined', { variables: Object.keys(variables).map((name) => `${name}=${variables[name]}`) })
    },
  })

function fromCommandLine(commandLine: string): Record<string, string> {
  const given = parameterValues(parseCommandLine(commandLine), 'talos.environment').filter((text) => text.indexOf('=') > 0)
  return Object.fromEntries(given.map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]))
}
