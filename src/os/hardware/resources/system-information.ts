import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Manufacturer, product, serial and UUID of the machine. */
export const SystemInformation = defineResource({
  type: 'SystemInformations.hardware.talos.dev',
  namespace: 'hardware',
  displayType: 'SystemInformation',
  aliases: ['systeminformation'],
  columns: {
    Manufacturer: '{.manufacturer}',
    ProductName: '{.productName}',
    Version: '{.version}',
    SerialNumber: '{.serialnumber}',
    UUID: '{.uuid}',
    WakeUpType: '{.wakeUpType}',
    SKUNumber: '{.skuNumber}',
  },
  spec: v.object({
    manufacturer: v.optional(v.string()),
    productName: v.optional(v.string()),
    version: v.optional(v.string()),
    serialnumber: v.optional(v.string()),
    uuid: v.optional(v.string()),
    wakeUpType: v.optional(v.string()),
    skuNumber: v.optional(v.string()),
  }),
})
