import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** A block device of the kernel, disk or partition. */
export const BlockDevice = defineResource({
  type: 'BlockDevices.block.talos.dev',
  namespace: 'runtime',
  displayType: 'BlockDevice',
  columns: { Type: '{.type}', PartitionName: '{.partitionName}', Generation: '{.generation}' },
  spec: v.object({
    type: v.string(),
    major: integer,
    minor: integer,
    partitionName: v.optional(v.string()),
    partitionNumber: v.optional(integer),
    devicePath: v.string(),
    generation: integer,
    parent: v.optional(v.string()),
    secondaries: v.optional(v.array(v.string())),
  }),
})
