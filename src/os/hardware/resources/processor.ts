import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** A processor listed in SMBIOS. */
export const Processor = defineResource({
  type: 'Processors.hardware.talos.dev',
  namespace: 'hardware',
  displayType: 'Processor',
  aliases: ['cpus', 'cpu'],
  columns: { Manufacturer: '{.manufacturer}', Model: '{.productName}', Cores: '{.coreCount}', Threads: '{.threadCount}' },
  spec: v.object({
    socket: v.optional(v.string()),
    manufacturer: v.optional(v.string()),
    productName: v.optional(v.string()),
    maxSpeedMhz: v.optional(integer),
    bootSpeedMhz: v.optional(integer),
    status: v.optional(integer),
    serialNumber: v.optional(v.string()),
    assetTag: v.optional(v.string()),
    partNumber: v.optional(v.string()),
    coreCount: v.optional(integer),
    coreEnabled: v.optional(integer),
    threadCount: v.optional(integer),
  }),
})
