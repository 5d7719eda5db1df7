import { type Controller, defineController, shared, weak } from '../../../../cosi/controller.ts'
import { declared, findAll } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { EtcFileSpec } from '../../../files/resources/etc-file.ts'
import type { Kernel } from '../../../kernel.ts'
import { StaticHostConfig } from '../../documents/resolver.ts'
import { HostDNSConfig } from '../../resources/host-dns.ts'
import { HostnameStatus } from '../../resources/hostname.ts'
import { NodeAddress } from '../../resources/node-address.ts'
import { ResolverStatus } from '../../resources/resolver.ts'

/** resolv.conf(5) for pods that use the node's resolver. */
export const podResolvConf = '/system/resolved/resolv.conf'

/** glibc reads at most this many name servers (MAXNS). */
const maxServers = 3

/** Writes /etc/hosts, /etc/hostname, /etc/resolv.conf and the resolv.conf for pods. */
export const configNetworkFiles = ({ files }: Pick<Kernel, 'files'>): Controller =>
  defineController({
    name: 'network.EtcFileController',
    inputs: {
      config: weak(MachineConfig, { id: 'v1alpha1' }),
      hostname: weak(HostnameStatus),
      resolvers: weak(ResolverStatus),
      addresses: weak(NodeAddress),
      dns: weak(HostDNSConfig),
    },
    outputs: { etc: shared(EtcFileSpec) },
    async reconcile({ config, hostname, resolvers, addresses, dns, etc }) {
      const upstream = resolvers.get('resolvers')?.spec
      const host = dns.get('config')?.spec
      if (upstream) {
        const search = upstream.searchDomains
        const own = host?.enabled ? ['127.0.0.53'] : upstream.dnsServers
        etc.put('resolv.conf', { contents: resolvConf(own, search), mode: 0o644, selinux_label: '' })
        const pods = host?.enabled && host.serviceHostDNSAddress ? [host.serviceHostDNSAddress] : upstream.dnsServers
        files.mkdirAll('/system/resolved', { mode: 0o755 })
        await files.writeAtomic(podResolvConf, resolvConf(pods, search), { mode: 0o644 })
      }
      const name = hostname.get('hostname')?.spec
      const address = addresses.get('default')?.spec.addresses[0]
      if (!name) return
      etc.put('hostname', { contents: `${name.hostname}\n`, mode: 0o644, selinux_label: '' })
      if (!address) return
      const found = declared(config.get('v1alpha1'))
      const extra: { ip?: string | undefined; aliases?: string[] | undefined }[] = [
        ...(found?.machine.network?.extraHostEntries ?? []),
        ...findAll(found, StaticHostConfig).map((host) => ({ ip: host.name, aliases: host.hostnames })),
      ]
      const fqdn = name.domainname ? [`${name.hostname}.${name.domainname}`] : []
      const lines: [string, ...string[]][] = [
        ['127.0.0.1', 'localhost'],
        [address.slice(0, address.indexOf('/')), ...fqdn, name.hostname],
        ['::1', 'localhost', 'ip6-localhost', 'ip6-loopback'],
        ['ff02::1', 'ip6-allnodes'],
        ['ff02::2', 'ip6-allrouters'],
        ...extra.flatMap(({ ip, aliases = [] }): [string, ...string[]][] => (ip ? [[ip, ...aliases]] : [])),
      ]
      etc.put('hosts', { contents: lines.map((line) => `${line.join(' ')}\n`).join(''), mode: 0o644, selinux_label: '' })
    },
  })

function resolvConf(servers: readonly string[], search: readonly string[]): string {
  const lines = servers.slice(0, maxServers).map((server) => `nameserver ${server}\n`)
  return [...lines, ...(search.length > 0 ? [`search ${search.join(' ')}\n`] : [])].join('')
}
