import type { Area, Machine } from '../area.ts'
import { refuseInstall } from '../lifecycle/install/install-system.ts'
import { reboot } from '../lifecycle/stop.ts'
import { applyConfiguration } from './api/apply.ts'
import { configMethods } from './api/config-service.ts'
import { acquireConfig } from './controllers/acquire.ts'
import { configMachineType } from './controllers/machine-type.ts'
import { persistConfig } from './controllers/persistence.ts'
import { endTrial } from './controllers/trial.ts'
import { ConfigDesk } from './desk.ts'
import { resources } from './nouns.ts'

/** What the operator declares. */
export const config: Area = {
  name: 'config',
  resources,
  controllers: (machine) => [acquireConfig(machine), persistConfig(machine.kernel), configMachineType, endTrial(deskOf(machine))],
  methods: (machine) => [applyConfiguration(deskOf(machine)), ...configMethods(deskOf(machine))],
}

const desks = new WeakMap<Machine, ConfigDesk>()

/** A machine has one desk: the API hands in there, and a controller takes back what was only tried. */
function deskOf(machine: Machine): ConfigDesk {
  let desk = desks.get(machine)
  if (!desk) {
    const restart = () =>
      void machine.sequencer.run('reboot', reboot(machine)).catch((error) => machine.log.error('reboot failed', { error }))
    desk = new ConfigDesk(machine, restart, (config) => refuseInstall(machine, config.v1alpha1?.machine?.install))
    desks.set(machine, desk)
  }
  return desk
}
