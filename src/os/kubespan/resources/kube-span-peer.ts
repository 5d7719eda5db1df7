import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr, hostPort, integer, ip, timestamp } from '../../values.ts'

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

/** The connection state of a peer. */
export const KubeSpanPeerStatus = defineResource({
  type: 'KubeSpanPeerStatuses.kubespan.talos.dev',
  namespace: 'kubespan',
  displayType: 'KubeSpanPeerStatus',
  columns: { Label: '{.label}', Endpoint: '{.endpoint}', State: '{.state}', Rx: '{.receiveBytes}', Tx: '{.transmitBytes}' },
  spec: v.object({
    endpoint: hostPort,
    label: v.string(),
    state: v.picklist(['unknown', 'up', 'down']),
    receiveBytes: integer,
    transmitBytes: integer,
    lastHandshakeTime: timestamp,
    lastUsedEndpoint: hostPort,
    lastEndpointChange: timestamp,
  }),
})
