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
  parts(machine) {
    const { config } = machine
    machine.calls.onEnd(observeCalls(config, machine.log))
    return {
      controllers: [
        acquireConfig(machine, config.state),
        persistConfig(config.state),
        configMachineType,
        endTrial(config),
        observeConnectivity(config),
      ],
      methods: [applyConfiguration(config), ...configMethods(config)],
    }
  },
}
