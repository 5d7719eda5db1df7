import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The desired driver of a PCI device. */
export const PCIDriverRebindConfig = defineResource({
  type: 'PCIDriverRebindConfigs.runtime.talos.dev',
  namespace: 'hardware',
  displayType: 'PCIDriverRebindConfig',
  columns: { Name: '{.name}', 'PCI ID': '{.pciID}', TargetDriver: '{.targetDriver}' },
  spec: v.object({ pciID: v.string(), targetDriver: v.string() }),
})

/** The driver a PCI device was bound to. */
export const PCIDriverRebindStatus = defineResource({
  type: 'PCIDriverRebindStatuses.runtime.talos.dev',
  namespace: 'hardware',
  displayType: 'PCIDriverRebindStatus',
  aliases: ['pcidriverrebinds'],
  columns: { Name: '{.name}', 'PCI ID': '{.pciID}', TargetDriver: '{.targetDriver}' },
  spec: v.object({ pciID: v.string(), targetDriver: v.string() }),
})
