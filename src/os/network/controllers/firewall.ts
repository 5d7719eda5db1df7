import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { DocumentOf } from '../../../document/kind.ts'
import { declared, find, findAll } from '../../config/declared.ts'
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

/** Links whose other end is this machine, or is known by its key. */
const trustedLinks = ['lo', 'siderolink', 'kubespan']
/** IPv6 does not work without: finding neighbours and routers, packet too big (RFC 4890 4.4.1). */
const neededTypes = [1, 2, 3, 4, 133, 134, 135, 136, 137, 141, 142]
const pingsPerSecond = 5

const accept = (rule: Omit<Rule, 'verdict'>): Rule => ({ ...rule, verdict: 'accept' })
const drop = (rule: Omit<Rule, 'verdict'>): Rule => ({ ...rule, verdict: 'drop' })

/**
 * Who may reach this machine, as `NetworkDefaultActionConfig` and `NetworkRuleConfig` say. What comes in for the machine
 * itself passes `ingress`; what a service would send elsewhere (node ports) is looked at before that, in `prerouting`.
 */
export const configFirewall: Controller = defineController({
  name: 'network.NfTablesChainConfigController',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), addresses: weak(NodeAddress) },
  outputs: { chain: shared(NfTablesChain) },
  reconcile({ config, addresses, chain }) {
    const found = declared(config.get('v1alpha1'))
    if (!found) return
    const block = find(found, NetworkDefaultActionConfig)?.ingress === 'block'
    const documents = findAll(found, NetworkRuleConfig)
    if (!block && documents.length === 0) return
    const network = found.cluster.network ?? {}
    const inside = [...(network.podSubnets ?? ['10.244.0.0/16']), ...(network.serviceSubnets ?? ['10.96.0.0/12'])]
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
    const own = (addresses.get('routed-no-k8s') ?? addresses.get('routed'))?.spec.addresses.map(single) ?? []
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

const single = (address: string) => `${address.split('/')[0]}/${address.includes(':') ? 128 : 32}`

/** Where nothing else passes a rule lets its sources in; where everything does it keeps all others out. */
function ruleOf({ portSelector = {}, ingress = [] }: DocumentOf<typeof NetworkRuleConfig>, block: boolean): Rule {
  const { protocol = 'tcp', ports = [] } = portSelector
  const ranges = ports.map(portRange).flatMap((range) => (range ? [{ lo: range[0], hi: range[1] }] : []))
  const sources = {
    includeSubnets: ingress.flatMap(({ subnet }) => (subnet ? [subnet] : [])),
    excludeSubnets: ingress.flatMap(({ except }) => (except ? [except] : [])),
    ...(block ? {} : { invert: true }),
  }
  return {
    matchSourceAddress: sources,
    matchLayer4: { protocol, ...(protocol === 'tcp' || protocol === 'udp' ? { matchDestinationPort: { ranges } } : {}) },
    verdict: block ? 'accept' : 'drop',
  }
}

/** The kernel's packet filter: set as a whole by a script for nft(8), and looked at. */
export interface PacketFilter {
  /** Throws nft's words when it refuses. */
  run(script: string): Promise<void>
  look: () => ReturnType<Kernel['nftables']['filterTable']>
  /** Tells of changes, by whomever. */
  watch(signal: AbortSignal): AsyncIterable<unknown>
}

/**
 * Gives the kernel its chains, all at once, and gives them again when another hand changed them: after every change of the
 * table the round looks at what is there, and only what is there counts.
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
      if (!stands(script, look())) throw new Error('set packet filter: another hand changed it meanwhile')
    },
  })
