import { AcquireConfigSpec } from './resources/acquire-config-spec.ts'
import { AcquireConfigStatus } from './resources/acquire-config-status.ts'
import { MachineConfig } from './resources/machine-config.ts'
import { MachineType } from './resources/machine-type.ts'

/** The kinds of resources of this area. */
export const resources = [AcquireConfigSpec, AcquireConfigStatus, MachineConfig, MachineType]
