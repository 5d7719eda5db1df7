import type { Area } from '../area.ts'
import { observePciDevices } from './controllers/pci-devices.ts'
import { bindPciDrivers, configPciDrivers } from './controllers/pci-driver-rebind.ts'
import { observeSystemInfo } from './controllers/system-info.ts'
import { resources } from './resource-types.ts'

/** The hardware area. A container sees no hardware of its host. */
export const hardware: Area = {
  name: 'hardware',
  resources,
  parts: (machine) => ({
    controllers:
      machine.kernel.mode === 'container'
        ? []
        : [observeSystemInfo(machine.kernel), observePciDevices(machine.kernel), configPciDrivers, bindPciDrivers(machine.kernel)],
  }),
}
