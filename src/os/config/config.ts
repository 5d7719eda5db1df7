import type { Area } from '../area.ts'
import { applyConfiguration } from './api/apply.ts'
import { configMethods } from './api/config-service.ts'
import { observeCalls } from './api/reached.ts'
import { acquireConfig } from './controllers/acquire.ts'
import { observeConnectivity } from './controllers/connectivity.ts'
import { configMachineType } from './controllers/machine-type.ts'
import { persistConfig } from './controllers/persistence.ts'
import { endTrial } from './controllers/trial.ts'
import { resources } from './resource-types.ts'

/** The machine configuration. */
export const config: Area = {
  name: 'config',
  resources,
  controllers(machine) {
    machine.calls.onEnd(observeCalls(machine.config, machine.log))
    return [
      acquireConfig(machine, machine.config.state),
      persistConfig(machine.config.state),
      configMachineType,
      endTrial(machine.config),
      observeConnectivity(machine.config),
    ]
  },
  methods: ({ config }) => [applyConfiguration(config), ...configMethods(config)],
}
