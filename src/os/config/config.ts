import { background } from '../../cosi/background.ts'
import type { Area, Machine } from '../area.ts'
import { missingFileRules } from '../files/user-files.ts'
import { refuseInstall, refuseSelector } from '../lifecycle/install/install-system.ts'
import { reboot } from '../lifecycle/stop.ts'
import { applyConfiguration } from './api/apply.ts'
import { configMethods } from './api/config-service.ts'
import { observeCalls } from './api/reached.ts'
import { ConfigApply } from './apply/config-apply.ts'
import type { ConfigState } from './config-state.ts'
import { acquireConfig } from './controllers/acquire.ts'
import { observeConnectivity } from './controllers/connectivity.ts'
import { configMachineType } from './controllers/machine-type.ts'
import { persistConfig } from './controllers/persistence.ts'
import { endTrial } from './controllers/trial.ts'
import { inMaintenance } from './maintenance.ts'
import { resources } from './resource-types.ts'

/** The machine configuration. */
export const config: Area = {
  name: 'config',
  resources,
  controllers(machine) {
    const service = applyOf(machine)
    return [
      acquireConfig(machine, service.state),
      persistConfig(service.state),
      configMachineType,
      endTrial(service),
      observeConnectivity(service),
    ]
  },
  methods: (machine) => [applyConfiguration(applyOf(machine)), ...configMethods(applyOf(machine))],
}

/** The only writer of a machine's configuration. */
export const configStateOf = (machine: Machine): ConfigState => applyOf(machine).state

const services = new WeakMap<Machine, ConfigApply>()

/** A machine has one apply service: callers submit configurations to it, controllers run its trials. */
function applyOf(machine: Machine): ConfigApply {
  let service = services.get(machine)
  if (!service) {
    service = new ConfigApply(machine, {
      rules({ machine: { files } = {} }, report) {
        // Before there is a configuration /var is not mounted yet.
        if (!inMaintenance(machine.store)) missingFileRules(machine.kernel.files, files, report)
      },
      reboot: () => background(() => machine.sequencer.run('reboot', reboot(machine)), machine.log, 'reboot failed'),
      refuseSelector: (selector) => refuseSelector(machine, selector),
      refuseFirst: (config) => refuseInstall(machine, config.v1alpha1?.machine?.install),
    })
    services.set(machine, service)
    machine.calls.onEnd(observeCalls(service, machine.log))
  }
  return service
}
