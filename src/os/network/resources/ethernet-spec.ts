import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** Rings, features and channels a network card should have. */
export const EthernetSpec = defineResource({
  type: 'EthernetSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'EthernetSpec',
  spec: v.object({
    rings: v.optional(
      v.object({
        rx: v.optional(integer),
        tx: v.optional(integer),
        'rx-mini': v.optional(integer),
        'rx-jumbo': v.optional(integer),
        'rx-buf-len': v.optional(integer),
        'cqe-size': v.optional(integer),
        'tx-push': v.optional(v.boolean()),
        'rx-push': v.optional(v.boolean()),
        'tx-push-buf-len': v.optional(integer),
        'tcp-data-split': v.optional(v.boolean()),
      }),
    ),
    features: v.optional(v.record(v.string(), v.boolean())),
    channels: v.optional(
      v.object({ rx: v.optional(integer), tx: v.optional(integer), other: v.optional(integer), combined: v.optional(integer) }),
    ),
    wakeOnLan: v.optional(v.array(v.string())),
  }),
})
