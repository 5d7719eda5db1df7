import type { Area } from '../area.ts'
import { applyConfiguration } from './api/apply.ts'
import { acquireConfig } from './controllers/acquire.ts'
import { configMachineType } from './controllers/machine-type.ts'
import { persistConfig } from './controllers/persistence.ts'
import { resources } from './nouns.ts'

/** What the operator declares. */
export const config: Area = {
  name: 'config',
  resources,
  controllers: (machine) => [acquireConfig(machine), persistConfig(machine.kernel), configMachineType],
  methods: (machine) => [applyConfiguration(machine)],
}
