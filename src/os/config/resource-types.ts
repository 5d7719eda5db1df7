import { AcquireConfigSpec, AcquireConfigStatus } from './resources/acquire-config.ts'
import { MachineConfig } from './resources/machine-config.ts'
import { MachineType } from './resources/machine-type.ts'

/** The kinds of resources of this area. */
export const resources = [AcquireConfigSpec, AcquireConfigStatus, MachineConfig, MachineType]
