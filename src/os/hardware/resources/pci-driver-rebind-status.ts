import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Which driver a PCI device was bound to. */
export const PCIDriverRebindStatus = defineResource({
  type: 'PCIDriverRebindStatuses.runtime.talos.dev',
  namespace: 'hardware',
  displayType: 'PCIDriverRebindStatus',
  aliases: ['pcidriverrebinds'],
  columns: { Name: '{.name}', 'PCI ID': '{.pciID}', TargetDriver: '{.targetDriver}' },
  spec: v.object({ pciID: v.string(), targetDriver: v.string() }),
})
