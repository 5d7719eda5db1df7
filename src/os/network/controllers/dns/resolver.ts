import { type Controller, defineController, shared, weak } from '../../../../cosi/controller.ts'
import { merge } from '../../../../cosi/merge.ts'
import { transform } from '../../../../cosi/transform.ts'
import { declared, find } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { type BootNetwork, silentBoot } from '../../boot-network.ts'
import { ResolverConfig } from '../../documents/resolver.ts'
import { HostnameStatus } from '../../resources/hostname.ts'
import { ResolverSpec, ResolverStatus } from '../../resources/resolver.ts'

/** Name servers of a machine without configured ones. */
const defaultServers = ['1.1.1.1', '8.8.8.8']

/** Declares the configured name servers. */
export const configResolvers = (boot: BootNetwork = silentBoot): Controller =>
  defineController({
    name: 'network.ResolverConfigController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), hostname: weak(HostnameStatus) },
    outputs: { spec: shared(ResolverSpec, 'network-config') },
    reconcile({ config, hostname, spec }) {
      spec.put('default/resolvers', { dnsServers: defaultServers, layer: 'default' })
      if (boot.nameServers.length > 0) spec.put('cmdline/resolvers', { dnsServers: [...boot.nameServers], layer: 'cmdline' })
      const found = declared(config.get('v1alpha1'))
      if (!found) return
      const document = find(found, ResolverConfig)
      const network = found.machine.network ?? {}
      const dnsServers = document?.nameservers?.flatMap(({ address }) => (address ? [address] : [])) ?? network.nameservers ?? []
      const searchDomains = [...(document?.searchDomains?.domains ?? network.searchDomains ?? [])]
      const disabled = document?.searchDomains?.disableDefault ?? network.disableSearchDomain ?? false
      const domain = hostname.get('hostname')?.spec.domainname
      if (domain && !disabled) searchDomains.push(domain)
      if (dnsServers.length > 0 || searchDomains.length > 0)
        spec.put('configuration/resolvers', {
          dnsServers,
          layer: 'configuration',
          ...(searchDomains.length > 0 && { searchDomains }),
        })
    },
  })

/** Takes name servers from the strongest layer that has any, and search domains likewise. Within a layer all specs are joined. */
export const mergeResolvers: Controller = merge(
  'ResolverMergeControllers.net.talos.dev',
  ResolverSpec,
  (layered) => {
    const strongest = (valuesOf: (spec: (typeof layered)[number]['spec']) => readonly string[]) => {
      const layer = layered.findLast(({ spec }) => valuesOf(spec).length > 0)?.spec.layer
      return { layer, all: [...new Set(layered.flatMap(({ spec }) => (spec.layer === layer ? valuesOf(spec) : [])))] }
    }
    const servers = strongest(({ dnsServers }) => dnsServers)
    const domains = strongest(({ searchDomains = [] }) => searchDomains)
    const layer = servers.layer ?? layered.at(-1)?.spec.layer
    if (!layer) return undefined
    return { dnsServers: servers.all, layer, ...(domains.all.length > 0 && { searchDomains: domains.all }) }
  },
  { id: () => 'resolvers' },
)

/** Publishes the name servers in use. */
export const applyResolvers: Controller = transform({
  name: 'network.ResolverSpecController',
  from: ResolverSpec,
  to: ResolverStatus,
  strong: true,
  apply({ dnsServers, searchDomains = [] }, { log }) {
    log.info('setting resolvers', { resolvers: dnsServers.join(', '), search_domains: searchDomains.join(', ') || undefined })
    return { dnsServers, searchDomains }
  },
})
