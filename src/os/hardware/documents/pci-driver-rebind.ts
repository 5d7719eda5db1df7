import { described, needed, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** Configures another driver for a PCI device. */
export const PCIDriverRebindConfig = defineDocument({
  kind: 'PCIDriverRebindConfig',
  description: 'Binds a PCI device to another driver.',
  notYet: 'rebinding drivers is not supported, leave the document out',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    targetDriver: described(needed(text), 'The driver it is given.'),
  }),
  rules({ name, targetDriver }, report) {
    if (!name) report.error(['name'], 'the id of the device is required, like "0000:04:00.00"')
    if (!targetDriver) report.error(['targetDriver'], 'the driver is required')
  },
})
