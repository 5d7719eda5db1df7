import { MemoryModule } from './resources/memory-module.ts'
import { PCIDevice } from './resources/pci-device.ts'
import { PCIDriverRebindConfig, PCIDriverRebindStatus } from './resources/pci-driver-rebind.ts'
import { PCRMeasurement } from './resources/pcr-measurement.ts'
import { PCRStatus } from './resources/pcr-status.ts'
import { Processor } from './resources/processor.ts'
import { SystemInformation } from './resources/system-information.ts'

/** The resource types of this area. */
export const resources = [
  MemoryModule,
  PCIDevice,
  PCIDriverRebindConfig,
  PCIDriverRebindStatus,
  PCRMeasurement,
  PCRStatus,
  Processor,
  SystemInformation,
]
