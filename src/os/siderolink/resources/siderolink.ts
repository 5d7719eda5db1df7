import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { hostPort, integer } from '../../values.ts'

/** Where the management tunnel leads. */
export const SiderolinkConfig = defineResource({
  type: 'SiderolinkConfigs.siderolink.talos.dev',
  namespace: 'config',
  displayType: 'SiderolinkConfig',
  sensitive: true,
  columns: { 'API Endpoint': '{.apiEndpoint}', Tunnel: '{.tunnel}' },
  spec: v.object({ apiEndpoint: v.string(), host: v.string(), joinToken: v.string(), insecure: v.boolean(), tunnel: v.boolean() }),
})

/** Whether the management tunnel is up. */
export const SiderolinkStatus = defineResource({
  type: 'SiderolinkStatuses.siderolink.talos.dev',
  namespace: 'config',
  displayType: 'SiderolinkStatus',
  columns: { Host: '{.host}', Connected: '{.connected}' },
  spec: v.object({ host: v.string(), connected: v.boolean(), linkName: v.string(), grpcTunnel: v.boolean() }),
})

/** The management tunnel over HTTP/2. */
export const SiderolinkTunnel = defineResource({
  type: 'SiderolinkTunnels.siderolink.talos.dev',
  namespace: 'config',
  displayType: 'SiderolinkTunnel',
  sensitive: true,
  columns: { 'API Endpoint': '{.apiEndpoint}', 'Link name': '{.linkName}', MTU: '{.mtu}', 'Node address': '{.nodeAddress}' },
  spec: v.object({ apiEndpoint: v.string(), linkName: v.string(), mtu: integer, nodeAddress: hostPort }),
})
