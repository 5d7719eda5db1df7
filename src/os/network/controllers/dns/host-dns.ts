import { type Controller, defineController, exclusive, shared, weak } from '../../../../cosi/controller.ts'
import { formatHostPort } from '../../../../wire/host-port.ts'
import { parseIp } from '../../../../wire/ip.ts'
import { Member } from '../../../cluster/resources/member.ts'
import { declared } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import type { Kernel } from '../../../kernel.ts'
import type { Resolver } from '../../dns/resolver.ts'
import { AddressSpec } from '../../resources/address.ts'
import { DNSResolveCache, DNSUpstream, HostDNSConfig } from '../../resources/host-dns.ts'
import { HostnameStatus } from '../../resources/hostname.ts'
import { ResolverStatus } from '../../resources/resolver.ts'

/** Resolver address for pods: link-local, so no network routes it. */
const podAddress = '169.254.116.108'
const hostAddress = '127.0.0.53'

/** Decides whether the node runs a resolver, and on which addresses it listens. */
export const configHostDns = ({ mode }: Pick<Kernel, 'mode'>): Controller =>
  defineController({
    name: 'network.HostDNSConfigController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
    outputs: { dns: exclusive(HostDNSConfig), address: shared(AddressSpec, 'network-config') },
    reconcile({ config, dns, address }) {
      const features = declared(config.get('v1alpha1'))?.machine.features?.hostDNS
      const enabled: boolean = features?.enabled ?? mode === 'container'
      const forPods = enabled && features?.forwardKubeDNSToHost === true
      dns.put('config', {
        enabled,
        listenAddresses: enabled ? [`${hostAddress}:53`, ...(forPods ? [`${podAddress}:53`] : [])] : [],
        ...(forPods && { serviceHostDNSAddress: podAddress }),
        ...(features?.resolveMemberNames && { resolveMemberNames: true }),
      })
      if (forPods)
        address.put(`default/lo/${podAddress}/32`, {
          address: `${podAddress}/32`,
          linkName: 'lo',
          family: 'inet4',
          scope: 'host',
          flags: 'permanent',
          layer: 'default',
        })
    },
  })

/** Publishes the upstream servers of the resolver and their health. */
export const observeDnsUpstreams = (resolver: Resolver): Controller =>
  defineController({
    name: 'network.DNSUpstreamController',
    inputs: { dns: weak(HostDNSConfig), resolvers: weak(ResolverStatus) },
    outputs: { upstreams: exclusive(DNSUpstream) },
    start: ({ wake }) => resolver.onHealth(wake),
    reconcile({ dns, resolvers, upstreams }) {
      const servers = dns.get('config')?.spec.enabled ? (resolvers.get('resolvers')?.spec.dnsServers ?? []) : []
      resolver.use(servers)
      servers.forEach((server, index) => {
        const addr = formatHostPort(server, 53)
        upstreams.put(`#${String(index).padStart(2, '0')} ${addr}`, { healthy: resolver.healthy(server) ? 'true' : 'false', addr })
      })
    },
  })

/** Hands the resolver the names of cluster members, if the configuration enables resolving them. */
export const resolveMembers = (resolver: Resolver): Controller =>
  defineController({
    name: 'network.MemberNamesController',
    inputs: { dns: weak(HostDNSConfig), members: weak(Member), hostname: weak(HostnameStatus) },
    outputs: {},
    reconcile({ dns, members, hostname }) {
      const names = new Map<string, Uint8Array[]>()
      const domain = hostname.get('hostname')?.spec.domainname
      if (dns.get('config')?.spec.resolveMemberNames)
        for (const { metadata, spec } of members.list()) {
          const addresses = spec.addresses.map(parseIp).filter((bytes) => bytes !== undefined)
          for (const name of [metadata.id, spec.hostname, domain ? `${metadata.id}.${domain}` : ''])
            if (name) names.set(name.toLowerCase(), addresses)
        }
      resolver.know(names)
    },
  })

/** Keeps the resolver listening on its configured addresses. An address that does not exist yet is retried. */
export const serveHostDns = (resolver: Resolver): Controller =>
  defineController({
    name: 'network.DNSResolveCacheController',
    inputs: { dns: weak(HostDNSConfig) },
    outputs: { caches: exclusive(DNSResolveCache) },
    async reconcile({ dns, caches }) {
      const wanted = dns.get('config')?.spec.listenAddresses ?? []
      await resolver.listen(wanted)
      for (const address of wanted) for (const protocol of ['tcp', 'udp']) caches.put(`${protocol}-${address}`, { status: 'running' })
    },
  })
