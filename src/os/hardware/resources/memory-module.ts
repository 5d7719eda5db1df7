import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** A memory module listed in SMBIOS. */
export const MemoryModule = defineResource({
  type: 'MemoryModules.hardware.talos.dev',
  namespace: 'hardware',
  displayType: 'MemoryModule',
  aliases: ['memorymodules', 'ram'],
  columns: { Manufacturer: '{.manufacturer}', Model: '{.productName}', SizeMiB: '{.sizeMiB}' },
  spec: v.object({
    sizeMiB: v.optional(integer),
    deviceLocator: v.optional(v.string()),
    bankLocator: v.optional(v.string()),
    speed: v.optional(integer),
    manufacturer: v.optional(v.string()),
    serialNumber: v.optional(v.string()),
    assetTag: v.optional(v.string()),
    productName: v.optional(v.string()),
  }),
})
