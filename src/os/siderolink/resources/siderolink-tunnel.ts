import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { hostPort, integer } from '../../values.ts'

/** The management tunnel over HTTP/2. */
export const SiderolinkTunnel = defineResource({
  type: 'SiderolinkTunnels.siderolink.talos.dev',
  namespace: 'config',
  displayType: 'SiderolinkTunnel',
  sensitive: true,
  columns: { 'API Endpoint': '{.apiEndpoint}', 'Link name': '{.linkName}', MTU: '{.mtu}', 'Node address': '{.nodeAddress}' },
  spec: v.object({ apiEndpoint: v.string(), linkName: v.string(), mtu: integer, nodeAddress: hostPort }),
})
