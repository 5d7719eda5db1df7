import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { hostPort, ip } from '../../values.ts'

/** Whether and where the host's resolver listens. */
export const HostDNSConfig = defineResource({
  type: 'HostDNSConfigs.net.talos.dev',
  namespace: 'network',
  displayType: 'HostDNSConfig',
  columns: { Enabled: '{.enabled}' },
  spec: v.object({
    enabled: v.boolean(),
    listenAddresses: v.optional(v.array(hostPort)),
    serviceHostDNSAddress: v.optional(ip),
    resolveMemberNames: v.optional(v.boolean()),
  }),
})

/** A name server that queries are forwarded to, and its health. */
export const DNSUpstream = defineResource({
  type: 'DNSUpstreams.net.talos.dev',
  namespace: 'network',
  displayType: 'DNSUpstream',
  columns: { Healthy: '{.healthy}', Address: '{.addr}' },
  spec: v.object({ healthy: v.picklist(['true', 'false']), addr: v.string() }),
})

/** A listener of the host's caching resolver. */
export const DNSResolveCache = defineResource({
  type: 'DNSResolveCaches.net.talos.dev',
  namespace: 'network',
  displayType: 'DNSResolveCach',
  columns: { Status: '{.status}' },
  spec: v.object({ status: v.string() }),
})
