import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { certificateAndKey } from '../../values.ts'

/** Certificates of etcd's member, peer and clients. */
export const EtcdSecret = defineResource({
  type: 'EtcdSecrets.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'EtcdSecret',
  sensitive: true,
  spec: v.object({
    etcd: v.optional(certificateAndKey),
    etcdPeer: v.optional(certificateAndKey),
    etcdAdmin: v.optional(certificateAndKey),
    etcdAPIServer: v.optional(certificateAndKey),
  }),
})
