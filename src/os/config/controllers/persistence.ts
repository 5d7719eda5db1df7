import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import type { ConfigState } from '../config-state.ts'
import { MachineConfig } from '../resources/machine-config.ts'

/** Keeps the configuration over restarts, also when STATE is mounted after it was found. */
export const persistConfig = (state: Pick<ConfigState, 'keep'>): Controller =>
  defineController({
    name: 'config.PersistenceController',
    inputs: { config: weak(MachineConfig, { id: 'persistent' }), state: weak(VolumeMountStatus, { id: mountId('STATE') }) },
    outputs: {},
    async reconcile({ config }) {
      if (config.get('persistent')) await state.keep()
    },
  })
