import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A PCI device, its class, vendor and driver. */
export const PCIDevice = defineResource({
  type: 'PCIDevices.hardware.talos.dev',
  namespace: 'hardware',
  displayType: 'PCIDevice',
  aliases: ['devices', 'device'],
  columns: { Class: '{.class}', Subclass: '{.subclass}', Vendor: '{.vendor}', Product: '{.product}' },
  spec: v.object({
    class: v.optional(v.string()),
    subclass: v.optional(v.string()),
    vendor: v.optional(v.string()),
    product: v.optional(v.string()),
    class_id: v.string(),
    subclass_id: v.string(),
    vendor_id: v.string(),
    product_id: v.string(),
    driver: v.optional(v.string()),
  }),
})
