import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr, integer, layer } from '../../values.ts'

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
