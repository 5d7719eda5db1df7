import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** Desired rings, features and channels of a network interface. */
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

/** Present rings, features and channels of a network interface. */
export const EthernetStatus = defineResource({
  type: 'EthernetStatuses.net.talos.dev',
  namespace: 'network',
  displayType: 'EthernetStatus',
  aliases: ['ethtool'],
  columns: { Link: '{.linkState}', Speed: '{.speedMbit}' },
  spec: v.object({
    linkState: v.optional(v.boolean()),
    speedMbit: v.optional(integer),
    port: v.string(),
    duplex: v.string(),
    ourModes: v.optional(v.array(v.string())),
    peerModes: v.optional(v.array(v.string())),
    rings: v.optional(
      v.object({
        'rx-max': v.optional(integer),
        'rx-mini-max': v.optional(integer),
        'rx-jumbo-max': v.optional(integer),
        'tx-max': v.optional(integer),
        'tx-push-buf-len-max': v.optional(integer),
        rx: v.optional(integer),
        'rx-mini': v.optional(integer),
        'rx-jumbo': v.optional(integer),
        tx: v.optional(integer),
        'rx-buf-len': v.optional(integer),
        'cqe-size': v.optional(integer),
        'tx-push': v.optional(v.boolean()),
        'rx-push': v.optional(v.boolean()),
        'tx-push-buf-len': v.optional(integer),
        'tcp-data-split': v.optional(v.boolean()),
      }),
    ),
    features: v.optional(v.record(v.string(), v.string())),
    channels: v.optional(
      v.object({
        'rx-max': v.optional(integer),
        'tx-max': v.optional(integer),
        'other-max': v.optional(integer),
        'combined-max': v.optional(integer),
        rx: v.optional(integer),
        tx: v.optional(integer),
        other: v.optional(integer),
        combined: v.optional(integer),
      }),
    ),
    wakeOnLAN: v.optional(v.array(v.string())),
  }),
})
