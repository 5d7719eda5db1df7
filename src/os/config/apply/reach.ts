/**
 * Changes that can cut a machine off from its operators, and how that is detected: by a call over a new connection, or, where the
 * caller does not come back by itself, by a target that answered before and answers again.
 */
import type { Store } from '../../../cosi/store.ts'
import { hostPortOfUrl } from '../../../wire/host-port.ts'
import { addressOnly, containsAddress, parsePrefix } from '../../../wire/prefix.ts'
import { Identity } from '../../cluster/resources/identity.ts'
import { Member } from '../../cluster/resources/member.ts'
import { KubeSpanConfig } from '../../kubespan/documents/kubespan.ts'
import { BondConfig } from '../../network/documents/bond.ts'
import { BridgeConfig } from '../../network/documents/bridge.ts'
import { DHCPv4Config, DHCPv6Config } from '../../network/documents/dhcp.ts'
import { DummyLinkConfig } from '../../network/documents/dummy-link.ts'
import { EthernetConfig } from '../../network/documents/ethernet.ts'
import { NetworkDefaultActionConfig, NetworkRuleConfig, portRange } from '../../network/documents/firewall.ts'
import { LinkAliasConfig, LinkConfig } from '../../network/documents/link.ts'
import { BlackholeRouteConfig, RoutingRuleConfig } from '../../network/documents/routing.ts'
import { HCloudVIPConfig, Layer2VIPConfig } from '../../network/documents/vip.ts'
import { VLANConfig, VRFConfig } from '../../network/documents/virtual-link.ts'
import { WireguardConfig } from '../../network/documents/wireguard.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { ResolverStatus } from '../../network/resources/resolver.ts'
import { podSubnets, serviceSubnets } from '../cluster-networks.ts'
import type { ConfigContainer } from '../container.ts'
import { V1Alpha1 } from '../documents/v1alpha1.ts'
import { type Change, isBelow } from '../history/changes.ts'

/** How long the machine has to be reached, and how long after a boot, which takes its own time. In milliseconds. */
export const reachWithin = 60_000
export const reachAfterStart = 180_000

/** How long a change takes to be in force everywhere: what arrives earlier may still have used the previous settings. */
export const settleTime = 3000

const networkKinds: readonly string[] = [
  BlackholeRouteConfig,
  BondConfig,
  BridgeConfig,
  DHCPv4Config,
  DHCPv6Config,
  DummyLinkConfig,
  EthernetConfig,
  HCloudVIPConfig,
  KubeSpanConfig,
  Layer2VIPConfig,
  LinkAliasConfig,
  LinkConfig,
  RoutingRuleConfig,
  VLANConfig,
  VRFConfig,
  WireguardConfig,
].map(({ kind }) => kind)

const firewallKinds: readonly string[] = [NetworkDefaultActionConfig.kind, NetworkRuleConfig.kind]

/** The part of the connectivity that a change puts at risk; undefined for none. */
export interface Risk {
  readonly network: boolean
  readonly firewall: boolean
  /** Of those that issue or are accepted. */
  readonly authority: boolean
  /** Of the machine's certificate. */
  readonly names: boolean
}

/** Whether the machine may become unreachable by these changes. More trust or more names never exclude anyone. */
export function riskOf(changes: readonly Change[]): Risk | undefined {
  const firewall = changes.some(({ kind }) => firewallKinds.includes(kind))
  const network = changes.some((change) => networkKinds.includes(change.kind) || isBelow(change, ['machine.network']))
  const less = (change: Change, path: string) => change.before !== undefined && isBelow(change, [path])
  const other = (change: Change) => change.kind === V1Alpha1.kind && isBelow(change, ['machine.ca'])
  const authority = changes.some((change) => other(change) || less(change, 'machine.acceptedCAs'))
  const names = changes.some((change) => less(change, 'machine.certSANs'))
  return network || firewall || authority || names ? { network, firewall, authority, names } : undefined
}

/** A target that may answer; by a TLS handshake where the authorities changed. */
export interface ReachTarget {
  readonly host: string
  readonly port: number
  readonly tls: boolean
}

/** The port of the machine API. */
export const apiPort = 50_000
const mostMembers = 5

/**
 * The targets that can show that the machine is still connected: the caller, the API server, other members, the resolvers. None
 * where the change is a firewall that blocks the caller, since it lets outgoing connections pass.
 */
export function reachTargets(risk: Risk, next: ConfigContainer, caller: string, store: Pick<Store, 'get' | 'list'>): ReachTarget[] {
  if (risk.firewall && !admits(next, caller, apiPort)) return []
  const own = new Set(store.list(NodeAddress).flatMap(({ spec }) => spec.addresses.map(addressOnly)))
  const others = (targets: readonly ReachTarget[]) => targets.filter(({ host }) => !own.has(host) && !/^(127\.|::1$|localhost$)/.test(host))
  const certificate = risk.authority || risk.names
  const node = store.get(Identity, 'local')?.spec.nodeId
  const members = store
    .list(Member)
    .filter(({ spec }) => spec.nodeId !== node)
    .flatMap(({ spec }) => spec.addresses.slice(0, 1).map((host) => ({ host, port: apiPort, tls: certificate })))
    .slice(0, mostMembers)
  if (certificate) return others(members)
  const endpoint = endpointOf(next)
  const resolvers = store.get(ResolverStatus, 'resolvers')?.spec.dnsServers ?? []
  return others([
    { host: caller, port: apiPort, tls: false },
    ...(endpoint ? [endpoint] : []),
    ...members,
    ...resolvers.map((host) => ({ host, port: 53, tls: false })),
  ])
}

function endpointOf(config: ConfigContainer): ReachTarget | undefined {
  const text = config.v1alpha1?.cluster?.controlPlane?.endpoint
  const endpoint = hostPortOfUrl(text)
  return endpoint && { ...endpoint, tls: false }
}

/** Whether the firewall of a configuration accepts an address at a TCP port. */
export function admits(config: ConfigContainer, address: string, port: number): boolean {
  const block = config.find(NetworkDefaultActionConfig)?.ingress === 'block'
  const cluster = config.v1alpha1?.cluster
  const inside = [...podSubnets(cluster), ...serviceSubnets(cluster)]
  if (inside.some((subnet) => containsAddress(parsePrefix(subnet), address))) return true
  for (const { portSelector = {}, ingress = [] } of config.findAll(NetworkRuleConfig)) {
    const { protocol = 'tcp', ports = [] } = portSelector
    const ranges = ports.map(portRange).filter((range) => range !== undefined)
    if (protocol !== 'tcp' || !ranges.some(([low, high]) => low <= port && port <= high)) continue
    const holds = (subnet: string | undefined) => subnet !== undefined && containsAddress(parsePrefix(subnet), address)
    const named = ingress.some(({ subnet }) => holds(subnet)) && !ingress.some(({ except }) => holds(except))
    // Where the default is accept, a rule blocks what it does not name.
    if (named === block) return block
  }
  return !block
}

/** The authorities that a configuration trusts, as PEM. */
export function authoritiesOf(config: ConfigContainer | undefined): string[] {
  const { ca, acceptedCAs = [] } = config?.v1alpha1?.machine ?? {}
  return [ca?.crt, ...acceptedCAs.map(({ crt }) => crt)].flatMap((crt) => (crt ? [Buffer.from(crt, 'base64').toString()] : []))
}
