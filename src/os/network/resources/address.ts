import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr, integer, ip, layer } from '../../values.ts'

/** An address a link should have. */
export const AddressSpec = defineResource({
  type: 'AddressSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'AddressSpec',
  spec: v.object({
    address: cidr,
    linkName: v.string(),
    family: v.string(),
    scope: v.string(),
    flags: v.string(),
    announceWithARP: v.optional(v.boolean()),
    priority: v.optional(integer),
    layer: layer,
  }),
})

/** An address the kernel has. */
export const AddressStatus = defineResource({
  type: 'AddressStatuses.net.talos.dev',
  namespace: 'network',
  displayType: 'AddressStatus',
  aliases: ['address', 'addresses'],
  columns: { Address: '{.address}', Link: '{.linkName}' },
  spec: v.object({
    address: cidr,
    local: v.optional(ip),
    broadcast: v.optional(ip),
    anycast: v.optional(ip),
    multicast: v.optional(ip),
    linkIndex: integer,
    linkName: v.string(),
    family: v.string(),
    scope: v.string(),
    flags: v.string(),
    priority: integer,
  }),
})
