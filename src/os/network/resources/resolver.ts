import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { ip, layer } from '../../values.ts'

/** The desired name servers. */
export const ResolverSpec = defineResource({
  type: 'ResolverSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'ResolverSpec',
  columns: { Layer: '{.layer}', Resolvers: '{.dnsServers}', 'Search Domains': '{.searchDomains}' },
  spec: v.object({ dnsServers: v.optional(v.array(ip), []), layer: layer, searchDomains: v.optional(v.array(v.string())) }),
})

/** The name servers in use. */
export const ResolverStatus = defineResource({
  type: 'ResolverStatuses.net.talos.dev',
  namespace: 'network',
  displayType: 'ResolverStatus',
  aliases: ['resolvers'],
  columns: { Resolvers: '{.dnsServers}', 'Search Domains': '{.searchDomains}' },
  spec: v.object({ dnsServers: v.optional(v.array(ip), []), searchDomains: v.optional(v.array(v.string()), []) }),
})
