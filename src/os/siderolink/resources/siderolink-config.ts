import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Where the management tunnel leads. */
export const SiderolinkConfig = defineResource({
  type: 'SiderolinkConfigs.siderolink.talos.dev',
  namespace: 'config',
  displayType: 'SiderolinkConfig',
  sensitive: true,
  columns: { 'API Endpoint': '{.apiEndpoint}', Tunnel: '{.tunnel}' },
  spec: v.object({ apiEndpoint: v.string(), host: v.string(), joinToken: v.string(), insecure: v.boolean(), tunnel: v.boolean() }),
})
