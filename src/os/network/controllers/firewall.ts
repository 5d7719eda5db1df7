import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { DocumentOf } from '../../../document/kind.ts'
import { hostPrefix } from '../../../wire/prefix.ts'
import { declared, find, findAll, podSubnets, serviceSubnets } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { NetworkDefaultActionConfig, NetworkRuleConfig, portRange } from '../documents/firewall.ts'
import { stands } from '../firewall/filter-state.ts'
import { nftScript } from '../firewall/nft-script.ts'
import { wakeOn } from '../kernel-events.ts'
import { NfTablesChain } from '../resources/nf-tables-chain.ts'
import { NodeAddress } from '../resources/node-address.ts'

type Chain = SpecOf<typeof NfTablesChain>
type Rule = NonNullable<Chain['rules']>[number]

/** Links whose peer is this machine itself or is authenticated by its key. */
const trustedLinks = ['lo', 'siderolink', 'kubespan']
/** ICMPv6 types that IPv6 depends on: neighbour and router discovery, packet too big (RFC 4890 4.4.1). */
const neededTypes = [1, 2, 3, 4, 133, 134, 135, 136, 137, 141, 142]
const pingsPerSecond = 5

const accept = (rule: Omit<Rule, 'verdict'>): Rule => ({ ...rule, verdict: 'accept' })
const drop = (rule: Omit<Rule, 'verdict'>): Rule => ({ ...rule, verdict: 'drop' })

/**
 * Builds the ingress firewall from `NetworkDefaultActionConfig` and `NetworkRuleConfig`. Packets for the machine itself pass
 * `ingress`; packets that kube-proxy would redirect (node ports) are matched earlier, in `prerouting`.
 */
export const configFirewall: Controller = defineController({
  name: 'network.NfTablesChainConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), addresses: weak(NodeAddress) },
  outputs: { chain: shared(NfTablesChain) },
  reconcile({ config, addresses, chain }) {
    const found = declared(config.get('v1alpha1'))
    if (!found) return
    const block = find(found, NetworkDefaultActionConfig)?.ingress === 'block'
    const documents = findAll(found, NetworkRuleConfig)
    if (!block && documents.length === 0) return
    const inside = [...podSubnets(found.cluster), ...serviceSubnets(found.cluster)]
    const always = [
      accept({ matchIIfName: { interfaceName: trustedLinks, operator: '==' } }),
      accept({ matchConntrackState: { states: ['established', 'related'] } }),
      ...(block
        ? [
            drop({ matchConntrackState: { states: ['invalid'] } }),
            accept({ matchLayer4: { protocol: 'icmpv6', matchICMPType: { types: neededTypes } } }),
            accept({ matchLayer4: { protocol: 'icmp' }, matchLimit: { packetRatePerSecond: pingsPerSecond } }),
            accept({ matchLayer4: { protocol: 'icmpv6' }, matchLimit: { packetRatePerSecond: pingsPerSecond } }),
          ]
        : []),
      accept({ matchSourceAddress: { includeSubnets: inside } }),
    ]
    const rules = documents.map((document) => ruleOf(document, block))
    const own = (addresses.get('routed-no-k8s') ?? addresses.get('routed'))?.spec.addresses.map(hostPrefix) ?? []
    const chains = { type: 'filter', priority: 'mangle' } as const
    chain.put('ingress', { ...chains, hook: 'input', policy: block ? 'drop' : 'accept', rules: [...always, ...rules] })
    if (own.length === 0) return
    const toUs = { matchDestinationAddress: { includeSubnets: own } }
    chain.put('prerouting', {
      ...chains,
      hook: 'prerouting',
      policy: 'accept',
      rules: [
        ...always,
        ...rules.map((rule) => ({ ...rule, ...toUs })),
        ...(block ? [drop({ ...toUs, matchLayer4: { protocol: 'tcp' } }), drop({ ...toUs, matchLayer4: { protocol: 'udp' } })] : []),
      ],
    })
  },
})

/** With default action block, a rule accepts its sources. With default action accept, it drops all other sources. */
function ruleOf({ portSelector = {}, ingress = [] }: DocumentOf<typeof NetworkRuleConfig>, block: boolean): Rule {
  const { protocol = 'tcp', ports = [] } = portSelector
  const ranges = ports.map(portRange).flatMap((range) => (range ? [{ lo: range[0], hi: range[1] }] : []))
  const sources = {
    includeSubnets: ingress.flatMap(({ subnet }) => (subnet ? [subnet] : [])),
    excludeSubnets: ingress.flatMap(({ except }) => (except ? [except] : [])),
    ...(!block && { invert: true }),
  }
  return {
    matchSourceAddress: sources,
    matchLayer4: { protocol, ...((protocol === 'tcp' || protocol === 'udp') && { matchDestinationPort: { ranges } }) },
    verdict: block ? 'accept' : 'drop',
  }
}

/** The kernel's packet filter: replaced as a whole by an nft(8) script, and read back. */
export interface PacketFilter {
  /** Rejects with nft's error output. */
  run(script: string): Promise<void>
  look: () => ReturnType<Kernel['nftables']['filterTable']>
  /** Yields on every change of the ruleset, by any process. */
  watch(signal: AbortSignal): AsyncIterable<unknown>
}

/**
 * Replaces the kernel's chains in one transaction, and again when another process changed them: every change of the table
 * triggers a reconcile, which compares the kernel's ruleset and not the last one sent.
 */
export const applyFirewall = ({ run, look, watch }: PacketFilter): Controller =>
  defineController({
    name: 'network.NfTablesChainController',
    inputs: { chains: weak(NfTablesChain) },
    outputs: {},
    start: (outside) => wakeOn(watch, outside),
    async reconcile({ chains, log }) {
      const found = new Map(chains.list().map(({ metadata, spec }) => [metadata.id, spec]))
      const script = nftScript(found)
      if (stands(script, look())) return
      log.info(found.size === 0 ? 'removing packet filter' : 'setting packet filter', { chains: [...found.keys()].join(', ') })
      await run(script.text)
      if (!stands(script, look())) throw new Error('set packet filter: another process changed it meanwhile')
    },
  })
