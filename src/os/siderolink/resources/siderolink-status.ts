import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Whether the management tunnel is up. */
export const SiderolinkStatus = defineResource({
  type: 'SiderolinkStatuses.siderolink.talos.dev',
  namespace: 'config',
  displayType: 'SiderolinkStatus',
  columns: { Host: '{.host}', Connected: '{.connected}' },
  spec: v.object({ host: v.string(), connected: v.boolean(), linkName: v.string(), grpcTunnel: v.boolean() }),
})
