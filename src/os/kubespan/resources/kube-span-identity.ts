import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr } from '../../values.ts'

/** This node's key and address in the mesh. */
export const KubeSpanIdentity = defineResource({
  type: 'KubeSpanIdentities.kubespan.talos.dev',
  namespace: 'kubespan',
  displayType: 'KubeSpanIdentity',
  sensitive: true,
  columns: { Address: '{.address}', PublicKey: '{.publicKey}' },
  spec: v.object({ address: cidr, subnet: cidr, privateKey: v.string(), publicKey: v.string() }),
})
