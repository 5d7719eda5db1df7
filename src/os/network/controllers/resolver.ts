import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { merge } from '../../../cosi/merge.ts'
import { transform } from '../../../cosi/transform.ts'
import { declared, find } from '../../config/declared.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { HostnameStatus } from '../resources/hostname-status.ts'
import { ResolverSpec } from '../resources/resolver-spec.ts'
import { ResolverStatus } from '../resources/resolver-status.ts'

/** Name servers for a machine that is told of none. */
const defaultServers = ['1.1.1.1', '8.8.8.8']

/** What the machine configuration says of name servers. */
export const configResolvers: Controller = defineController({
  name: 'network.ResolverConfigController',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), hostname: weak(HostnameStatus) },
  outputs: { spec: shared(ResolverSpec, 'network-config') },
  reconcile({ config, hostname, spec }) {
    spec.put('default/resolvers', { dnsServers: defaultServers, layer: 'default' })
    const found = declared(config.get('v1alpha1'))
    if (!found) return
    const document = find(found, 'ResolverConfig')
    const network = found.machine.network ?? {}
    const dnsServers: string[] = document?.nameservers?.map((server: { address: string }) => server.address) ?? network.nameservers ?? []
    const searchDomains: string[] = [...(document?.searchDomains?.domains ?? network.searchDomains ?? [])]
    const disabled = document?.searchDomains?.disableDefault ?? network.disableSearchDomain ?? false
    const domain = hostname.get('hostname')?.spec.domainname
    if (domain && !disabled) searchDomains.push(domain)
    if (dnsServers.length > 0 || searchDomains.length > 0)
      spec.put('configuration/resolvers', {
        dnsServers,
        layer: 'configuration',
        ...(searchDomains.length > 0 ? { searchDomains } : {}),
      })
  },
})

/** The strongest layer that names servers, and the strongest that names search domains. */
export const mergeResolvers: Controller = merge('ResolverMergeControllers.net.talos.dev', ResolverSpec, (layered) => {
  const servers = layered.findLast(({ spec }) => spec.dnsServers.length > 0)?.spec
  const domains = layered.findLast(({ spec }) => (spec.searchDomains ?? []).length > 0)?.spec.searchDomains
  const { dnsServers, layer } = servers ?? layered.at(-1)!.spec
  return { dnsServers, layer, ...(domains ? { searchDomains: domains } : {}) }
})

/** Which name servers are used from now on. */
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
