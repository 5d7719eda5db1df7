import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr, hostPort, ip } from '../../values.ts'

/** A peer of the mesh. */
export const KubeSpanPeerSpec = defineResource({
  type: 'KubeSpanPeerSpecs.kubespan.talos.dev',
  namespace: 'kubespan',
  displayType: 'KubeSpanPeerSpec',
  columns: { Label: '{.label}', Endpoints: '{.endpoints}' },
  spec: v.object({
    address: ip,
    allowedIPs: v.optional(v.array(cidr), []),
    endpoints: v.optional(v.array(hostPort), []),
    label: v.string(),
  }),
})
