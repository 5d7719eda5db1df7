import type { Area } from '../area.ts'
import { observePciDevices } from './controllers/pci-devices.ts'
import { observeSystemInfo } from './controllers/system-info.ts'
import { resources } from './resource-types.ts'

/** What the machine is built of; a container is told nothing of its host. */
export const hardware: Area = {
  name: 'hardware',
  resources,
  controllers: ({ kernel }) => (kernel.mode === 'container' ? [] : [observeSystemInfo(kernel), observePciDevices(kernel)]),
}
