import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** A whole disk: size, transport, model, serial. */
export const Disk = defineResource({
  type: 'Disks.block.talos.dev',
  namespace: 'runtime',
  displayType: 'Disk',
  columns: {
    Size: '{.pretty_size}',
    'Read Only': '{.readonly}',
    Transport: '{.transport}',
    Rotational: '{.rotational}',
    WWID: '{.wwid}',
    Model: '{.model}',
    Serial: '{.serial}',
  },
  spec: v.object({
    dev_path: v.string(),
    size: integer,
    pretty_size: v.string(),
    io_size: integer,
    sector_size: integer,
    readonly: v.boolean(),
    cdrom: v.boolean(),
    model: v.optional(v.string()),
    serial: v.optional(v.string()),
    modalias: v.optional(v.string()),
    wwid: v.optional(v.string()),
    uuid: v.optional(v.string()),
    bus_path: v.optional(v.string()),
    sub_system: v.optional(v.string()),
    transport: v.optional(v.string()),
    rotational: v.optional(v.boolean()),
    secondary_disks: v.optional(v.array(v.string())),
    symlinks: v.optional(v.array(v.string())),
  }),
})
