import type { Store } from '../../cosi/store.ts'
import { VolumeRecovery } from '../block/resources/volume-recovery.ts'
import { MaintenanceServiceRequest } from '../runtime/resources/maintenance-service.ts'
import { configOf } from './parse.ts'
import { MachineConfig } from './resources/machine-config.ts'
import { isWhole } from './sources/search.ts'

/** Whether STATE waits for its recovery key: the machine has a configuration, but cannot read it, and accepts no other. */
export const stateIsLocked = (store: Store): boolean => store.get(VolumeRecovery, 'STATE')?.spec.locked === true

/** Whether the machine still waits for its first configuration, which it accepts from any caller. */
export function inMaintenance(store: Store): boolean {
  if (!store.get(MaintenanceServiceRequest, 'maintenance') || stateIsLocked(store)) return false
  const config = configOf(store.get(MachineConfig, 'v1alpha1'))
  return !config || !isWhole(config)
}
