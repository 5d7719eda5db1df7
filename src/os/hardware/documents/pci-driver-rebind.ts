import { described, needed, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { pciAddress } from '../resources/pci-address.ts'

/** Configures another driver for a PCI device. */
export const PCIDriverRebindConfig = defineDocument({
  kind: 'PCIDriverRebindConfig',
  description: 'Binds a PCI device to another driver.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The address of the device, like `0000:04:00.0`: the names of `talosctl get pcidevices`.'),
    targetDriver: described(
      needed(text),
      'The driver it is given, such as `vfio-pci`; its module must be in the kernel or in `machine.kernel.modules`.',
    ),
  }),
  rules({ name, targetDriver }, report, mode) {
    if (mode === 'container') report.error([], 'a container has no PCI devices of its own: leave the document out')
    if (!name || !pciAddress(name)) report.error(['name'], 'the address of the device is required, like "0000:04:00.0"')
    if (!targetDriver || !/^[\w-]+$/.test(targetDriver)) report.error(['targetDriver'], 'the name of a driver is required, like "vfio-pci"')
  },
})
