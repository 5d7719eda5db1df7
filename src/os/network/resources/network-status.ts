import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Readiness of addresses, connectivity, hostname and files. */
export const NetworkStatus = defineResource({
  type: 'NetworkStatuses.net.talos.dev',
  namespace: 'network',
  displayType: 'NetworkStatus',
  aliases: ['netstatus', 'netstatuses'],
  columns: { Address: '{.addressReady}', Connectivity: '{.connectivityReady}', Hostname: '{.hostnameReady}', Etc: '{.etcFilesReady}' },
  spec: v.object({ addressReady: v.boolean(), connectivityReady: v.boolean(), hostnameReady: v.boolean(), etcFilesReady: v.boolean() }),
})
