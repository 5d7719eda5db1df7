import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { MachineConfig } from '../resources/machine-config.ts'

/** Where the configuration is kept over restarts, on STATE. */
export const statePath = '/system/state/config.yaml'

/** The one kept before it. */
export const previousStatePath = `${statePath}.previous`

/** Keeps the configuration over restarts, and the one before it beside it. */
export const persistConfig = ({ files }: Pick<Kernel, 'files'>): Controller =>
  defineController({
    name: 'config.PersistenceController',
    inputs: { config: weak(MachineConfig, { id: 'persistent' }) },
    outputs: {},
    async reconcile({ config, log }) {
      const wanted = config.get('persistent')?.spec
      const kept = files.readTextIfThere(statePath)
      if (wanted === undefined || wanted === kept) return
      if (kept !== undefined) await files.writeAtomic(previousStatePath, kept, { mode: 0o600 })
      await files.writeAtomic(statePath, wanted, { mode: 0o600 })
      log.info('machine configuration kept')
    },
  })
