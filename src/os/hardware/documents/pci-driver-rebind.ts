import { needed, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** A PCI device that gets another driver. */
export const PCIDriverRebindConfig = defineDocument({
  kind: 'PCIDriverRebindConfig',
  description: 'A PCI device that gets another driver.',
  notYet: 'devices keep the driver that the kernel gives them, leave the document out',
  nameKey: 'name',
  schema: section({ name: text, targetDriver: needed(text) }),
  rules({ name, targetDriver }, report) {
    if (!name) report.error(['name'], 'the id of the device is required, like "0000:04:00.00"')
    if (!targetDriver) report.error(['targetDriver'], 'the driver is required')
  },
})
