import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import { VolumeMountStatus } from '../../block/resources/volume-mount-status.ts'
import type { Kernel } from '../../kernel.ts'
import { mountId } from '../../lifecycle/volumes.ts'
import { keepConfig } from '../keep.ts'
import { MachineConfig } from '../resources/machine-config.ts'

/** Keeps the configuration over restarts, and the one before it beside it. */
export const persistConfig = ({ files }: Pick<Kernel, 'files'>): Controller =>
  defineController({
    name: 'config.PersistenceController',
    // STATE is mounted over what was written before there was one.
    inputs: { config: weak(MachineConfig, { id: 'persistent' }), state: weak(VolumeMountStatus, { id: mountId('STATE') }) },
    outputs: {},
    async reconcile({ config, log }) {
      const wanted = config.get('persistent')?.spec
      if (wanted !== undefined && (await keepConfig(files, wanted))) log.info('machine configuration kept')
    },
  })
