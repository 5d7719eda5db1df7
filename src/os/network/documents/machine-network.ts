/** `machine.network`: the whole network in one section, the older form of the network documents. */
import type * as v from 'valibot'
import { duration, flag, integer, isCidr, isIp, keyedListOf, listOf, section, text, unsigned } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'
import type { Path } from '../../../document/path.ts'
import { notYet } from '../../../document/unsupported.ts'
import { kubeSpanFields, kubeSpanRules } from '../../kubespan/documents/kubespan.ts'
import { bondValues } from './bond.ts'
import { isWireguardKey } from './wireguard.ts'

const selectorFields = { busPath: text, hardwareAddr: text, permanentAddr: text, pciID: text, driver: text, physical: flag }
const selector = section(selectorFields)
const routes = listOf(section({ network: text, gateway: text, source: text, metric: unsigned(32), mtu: unsigned(32) }))
const cloudVip = notYet(
  section({ apiToken: text }),
  'shared addresses are announced on the local network only, use "vip.ip" alone or a load balancer',
)
const vip = section({ ip: text, equinixMetal: cloudVip, hcloud: cloudVip })
const dhcpOptions = section({ routeMetric: unsigned(32), ipv4: flag, ipv6: flag, duidv6: text })

const bond = section({
  interfaces: listOf(text),
  deviceSelectors: listOf(selector),
  arpIPTarget: listOf(text),
  mode: text,
  xmitHashPolicy: text,
  lacpRate: text,
  adActorSystem: notYet(text, 'the address of the bond is used, leave it out'),
  arpValidate: text,
  arpAllTargets: text,
  primary: text,
  primaryReselect: text,
  failOverMac: text,
  adSelect: text,
  miimon: unsigned(32),
  updelay: unsigned(32),
  downdelay: unsigned(32),
  arpInterval: unsigned(32),
  resendIgmp: unsigned(32),
  minLinks: unsigned(32),
  lpInterval: unsigned(32),
  packetsPerSlave: unsigned(32),
  numPeerNotif: unsigned(8),
  tlbDynamicLb: unsigned(8),
  allSlavesActive: unsigned(8),
  useCarrier: flag,
  adActorSysPrio: unsigned(16),
  adUserPortKey: unsigned(16),
  peerNotifyDelay: unsigned(32),
})

const vlan = section({
  addresses: listOf(text),
  cidr: text,
  routes,
  dhcp: flag,
  vlanId: unsigned(16),
  mtu: unsigned(32),
  vip,
  dhcpOptions,
})

const networkInterface = section({
  interface: text,
  deviceSelector: selector,
  addresses: listOf(text),
  cidr: text,
  routes,
  bond,
  bridge: section({ interfaces: listOf(text), stp: section({ enabled: flag }), vlan: section({ vlanFiltering: flag }) }),
  bridgePort: section({ master: text }),
  vlans: keyedListOf(vlan, 'vlanId'),
  mtu: integer,
  dhcp: flag,
  ignore: flag,
  dummy: flag,
  dhcpOptions,
  wireguard: section({
    privateKey: text,
    listenPort: integer,
    firewallMark: integer,
    peers: listOf(section({ publicKey: text, endpoint: text, persistentKeepaliveInterval: duration, allowedIPs: listOf(text) })),
  }),
  vip,
})

/** The schema of the section. */
export const machineNetwork = section({
  hostname: text,
  interfaces: keyedListOf(networkInterface, 'interface', 'deviceSelector'),
  nameservers: listOf(text),
  searchDomains: listOf(text),
  extraHostEntries: listOf(section({ ip: text, aliases: listOf(text) })),
  kubespan: section(kubeSpanFields),
  disableSearchDomain: flag,
})

/** One entry of `machine.network.interfaces`. */
export type NetworkInterface = v.InferOutput<typeof networkInterface>
type Bond = v.InferOutput<typeof bond>

/** Validation rules of the section. */
export function machineNetworkRules(network: v.InferOutput<typeof machineNetwork>, report: Reporter, isWorker: boolean): void {
  const path: Path = ['machine', 'network']
  for (const [index, address] of (network.nameservers ?? []).entries()) {
    if (!isIp(address)) report.error([...path, 'nameservers', index], `${JSON.stringify(address)} is not an IP address`)
  }
  if (network.kubespan) kubeSpanRules(network.kubespan, report, [...path, 'kubespan'])
  const interfaces = network.interfaces ?? []
  const owners = new Map<string, number>()
  for (const [index, link] of interfaces.entries()) {
    for (const member of [...(link.bond?.interfaces ?? []), ...(link.bridge?.interfaces ?? [])]) {
      const owner = owners.get(member)
      const where = [...path, 'interfaces', index, link.bond ? 'bond' : 'bridge', 'interfaces']
      if (owner !== undefined && owner !== index) report.error(where, `${JSON.stringify(member)} belongs to another bond or bridge already`)
      owners.set(member, index)
    }
  }
  for (const [index, link] of interfaces.entries()) {
    interfaceRules(link, report, [...path, 'interfaces', index], isWorker)
    const configured = link.dhcp || link.cidr || link.addresses?.length || link.vip
    if (link.interface && owners.has(link.interface) && configured) {
      report.error(
        [...path, 'interfaces', index],
        `${JSON.stringify(link.interface)} is part of a bond or bridge: it can have no addresses, dhcp or vip of its own`,
      )
    }
  }
}

function interfaceRules(link: NetworkInterface, report: Reporter, path: Path, isWorker: boolean): void {
  const selects = link.deviceSelector && Object.values(link.deviceSelector).some((value) => value !== undefined)
  if (link.interface && link.deviceSelector) report.error(path, 'interface and deviceSelector exclude each other')
  else if (!link.interface && !link.deviceSelector) report.error(path, 'one of interface and deviceSelector is required')
  else if (link.deviceSelector && !selects) report.error([...path, 'deviceSelector'], 'a selector needs at least one condition')
  if (link.bond && link.bridge) report.error(path, 'bond and bridge exclude each other')
  if (link.bond) bondRules(link.bond, report, [...path, 'bond'])
  addressRules(link, report, path, isWorker)
  for (const [index, vlan] of (link.vlans ?? []).entries()) addressRules(vlan, report, [...path, 'vlans', index], isWorker)
  if (!link.wireguard) return
  const { privateKey, peers = [] } = link.wireguard
  const wireguard = [...path, 'wireguard']
  if (!isWireguardKey(privateKey ?? '')) report.error([...wireguard, 'privateKey'], 'a private key is required: base64 of 32 bytes')
  for (const [index, peer] of peers.entries()) {
    if (!isWireguardKey(peer.publicKey ?? ''))
      report.error([...wireguard, 'peers', index, 'publicKey'], 'a public key is required: base64 of 32 bytes')
    if (peer.endpoint && !/:\d{1,5}$/.test(peer.endpoint))
      report.error([...wireguard, 'peers', index, 'endpoint'], 'the endpoint has no port')
    for (const [at, subnet] of (peer.allowedIPs ?? []).entries()) {
      if (!isCidr(subnet))
        report.error([...wireguard, 'peers', index, 'allowedIPs', at], `${JSON.stringify(subnet)} is not an address with a prefix length`)
    }
  }
}

type Addressed = Pick<NetworkInterface, 'addresses' | 'cidr' | 'routes' | 'vip'>

function addressRules({ addresses = [], cidr, routes = [], vip }: Addressed, report: Reporter, path: Path, isWorker: boolean): void {
  if (cidr && addresses.length) report.error([...path, 'cidr'], 'cidr and addresses exclude each other')
  for (const [index, address] of addresses.entries()) {
    if (!isIp(address) && !isCidr(address)) report.error([...path, 'addresses', index], `${JSON.stringify(address)} is not an address`)
  }
  if (cidr && !isCidr(cidr)) report.error([...path, 'cidr'], `${JSON.stringify(cidr)} is not an address with a prefix length`)
  for (const [index, route] of routes.entries()) {
    const at = [...path, 'routes', index]
    if (!route.network && !route.gateway) report.error(at, 'a route needs a network or a gateway')
    if (route.network && !isCidr(route.network))
      report.error([...at, 'network'], `${JSON.stringify(route.network)} is not a network with a prefix length`)
    for (const key of ['gateway', 'source'] as const) {
      if (route[key] && !isIp(route[key])) report.error([...at, key], `${JSON.stringify(route[key])} is not an IP address`)
    }
  }
  if (!vip) return
  if (isWorker) report.error([...path, 'vip'], 'only control planes share an address')
  if (!isIp(vip.ip ?? '')) report.error([...path, 'vip', 'ip'], 'the shared address is required')
}

function bondRules(bond: Bond, report: Reporter, path: Path): void {
  const at = (key: keyof Bond) => [...path, key]
  if (bond.interfaces?.length && bond.deviceSelectors?.length) report.error(path, 'interfaces and deviceSelectors exclude each other')
  for (const [key, words] of Object.entries(bondValues) as [keyof typeof bondValues, readonly string[]][]) {
    const value = bond[key]
    if (value && !words.includes(value)) report.error(at(key), `${JSON.stringify(value)} is not one of ${words.join(', ')}`)
  }
  for (const key of ['updelay', 'downdelay'] as const) {
    const delay = bond[key]
    if (!delay) continue
    if (!bond.miimon) report.error(at(key), `${key} needs miimon`)
    else if (delay % bond.miimon !== 0) report.error(at(key), `${delay} is not a multiple of miimon, ${bond.miimon}`)
  }
  const { mode = 'balance-rr' } = bond
  if ((bond.packetsPerSlave ?? 0) > 1 && mode !== 'balance-rr') report.error(at('packetsPerSlave'), 'more than 1 only in balance-rr')
  if (bond.tlbDynamicLb && mode !== 'balance-tlb' && mode !== 'balance-alb')
    report.error(at('tlbDynamicLb'), 'only in balance-tlb and balance-alb')
  for (const key of ['adActorSysPrio', 'adUserPortKey'] as const) {
    if (bond[key] && mode !== '802.3ad') report.error(at(key), 'only in 802.3ad')
  }
}
