import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { layer } from '../../values.ts'

/** The desired hostname. */
export const HostnameSpec = defineResource({
  type: 'HostnameSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'HostnameSpec',
  spec: v.object({ hostname: v.string(), domainname: v.string(), layer: layer }),
})

/** The hostname set in the kernel. */
export const HostnameStatus = defineResource({
  type: 'HostnameStatuses.net.talos.dev',
  namespace: 'network',
  displayType: 'HostnameStatus',
  aliases: ['hostname'],
  columns: { Hostname: '{.hostname}', Domainname: '{.domainname}' },
  spec: v.object({ hostname: v.string(), domainname: v.string() }),
})
