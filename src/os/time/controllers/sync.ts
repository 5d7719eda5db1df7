import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { declared } from '../../config/declared.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { TimeStatus } from '../resources/time-status.ts'

/** In a container the clock is the host's, and so is keeping it right; elsewhere it is ours unless that is switched off. */
export const syncTime = ({ mode }: Pick<Kernel, 'mode'>): Controller =>
  defineController({
    name: 'time.SyncController',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
    outputs: { status: exclusive(TimeStatus) },
    reconcile({ config, status }) {
      const disabled = mode === 'container' || declared(config.get('v1alpha1'))?.machine.time?.disabled === true
      status.put('node', { synced: disabled, epoch: 0, syncDisabled: disabled })
    },
  })
