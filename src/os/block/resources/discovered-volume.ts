import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** The result of probing a device: file system, partition table, label. */
export const DiscoveredVolume = defineResource({
  type: 'DiscoveredVolumes.block.talos.dev',
  namespace: 'runtime',
  displayType: 'DiscoveredVolume',
  columns: { Type: '{.type}', Size: '{.pretty_size}', Discovered: '{.name}', Label: '{.label}', PartitionLabel: '{.partition_label}' },
  spec: v.object({
    dev_path: v.string(),
    type: v.string(),
    device_path: v.string(),
    parent: v.optional(v.string()),
    parent_dev_path: v.optional(v.string()),
    offset: integer,
    size: integer,
    pretty_size: v.string(),
    sector_size: v.optional(integer),
    io_size: v.optional(integer),
    name: v.string(),
    uuid: v.optional(v.string()),
    label: v.optional(v.string()),
    block_size: v.optional(integer),
    filesystem_block_size: v.optional(integer),
    probed_size: v.optional(integer),
    partition_uuid: v.optional(v.string()),
    partition_type: v.optional(v.string()),
    partition_label: v.optional(v.string()),
    partition_index: v.optional(integer),
  }),
})
