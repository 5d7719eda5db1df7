import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { ip } from '../../values.ts'

/** How etcd runs: name, addresses, arguments. */
export const EtcdSpec = defineResource({
  type: 'EtcdSpecs.etcd.talos.dev',
  namespace: 'etcd',
  displayType: 'EtcdSpec',
  columns: {
    Name: '{.name}',
    AdvertisedAddresses: '{.advertisedAddresses}',
    ListenPeerAddresses: '{.listenPeerAddresses}',
    ListenClientAddresses: '{.listenClientAddresses}',
  },
  spec: v.object({
    name: v.string(),
    advertisedAddresses: v.optional(v.array(ip), []),
    listenPeerAddresses: v.optional(v.array(ip), []),
    listenClientAddresses: v.optional(v.array(ip), []),
    image: v.string(),
    extraArgs: v.optional(v.record(v.string(), v.object({ values: v.optional(v.array(v.string()), []) })), {}),
  }),
})
