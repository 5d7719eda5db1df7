import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { hostPort, integer, timestamp } from '../../values.ts'

/** How the connection to a peer fares. */
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
