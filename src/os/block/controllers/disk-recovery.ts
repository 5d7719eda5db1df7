import { defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { DiskRecoveryConfig } from '../documents/disk-recovery.ts'
import { DiskRecovery } from '../resources/disk-recovery.ts'

/** Publishes who can recover encrypted volumes. Without a configuration nothing is known: keys for recipients stay then. */
export const configDiskRecovery = defineController({
  name: 'block.DiskRecoveryController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { recovery: exclusive(DiskRecovery) },
  reconcile({ config, recovery }) {
    const read = declared(config.get('v1alpha1'))
    if (!read || Object.keys(read.machine).length === 0) return
    recovery.put('recovery', { recipients: find(read, DiskRecoveryConfig)?.recipients ?? [] })
  },
})
