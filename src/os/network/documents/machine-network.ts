/** `machine.network`: the whole network in one section, the older form of the network documents. */
import type * as v from 'valibot'
import { described, duration, flag, integer, isCidr, isIp, keyedListOf, listOf, section, text, unsigned } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'
import type { Path } from '../../../document/path.ts'
import { notYet } from '../../../document/unsupported.ts'
import { kubeSpanFields, kubeSpanRules } from '../../kubespan/documents/kubespan.ts'
import { bondValues } from './bond.ts'
import { isWireguardKey } from './wireguard.ts'

const selectorFields = {
  busPath: described(text, 'Where it sits on its bus; * stands for anything.'),
  hardwareAddr: described(text, 'The hardware address.'),
  permanentAddr: described(text, 'The hardware address it was made with.'),
  pciID: described(text, 'Vendor and product on the PCI bus.'),
  driver: described(text, "The kernel's driver."),
  physical: described(flag, 'Only links that are hardware.'),
}
const selector = section(selectorFields)
const routes = listOf(
  section({
    network: described(text, 'Where to; without it, everything.'),
    gateway: described(text, 'The next machine on the way.'),
    source: described(text, 'The address packets go out with.'),
    metric: described(unsigned(32), 'The lower, the better the route.'),
    mtu: described(unsigned(32), 'The largest packet on this route, in bytes.'),
  }),
)
const cloudVip = section({ apiToken: described(text, 'The token of the API, with the right to read and write.') })
const vip = section({
  ip: described(text, 'The shared address.'),
  equinixMetal: described(cloudVip, 'Moves the address with the API of Equinix Metal.'),
  hcloud: described(cloudVip, 'Moves the address with the API of Hetzner Cloud.'),
})
const dhcpOptions = section({
  routeMetric: described(unsigned(32), 'The metric of routes it gives.'),
  ipv4: described(flag, 'Requests IPv4 addresses.'),
  ipv6: described(flag, 'Requests IPv6 addresses.'),
  duidv6: described(text, 'The DUID with which the machine requests IPv6 addresses.'),
})

const bond = section({
  interfaces: described(listOf(text), 'The links that are joined.'),
  deviceSelectors: described(listOf(selector), 'Pick links by what they are, in the place of their names.'),
  arpIPTarget: described(listOf(text), 'Addresses that are probed to see whether a link works.'),
  mode: described(text, 'How the links share the work.'),
  xmitHashPolicy: described(text, 'What of a packet decides over which link it goes.'),
  lacpRate: described(text, 'How often the other end is requested to send LACP packets.'),
  adActorSystem: described(notYet(text, 'the address of the bond is used, leave it out'), 'The hardware address in LACP packets.'),
  arpValidate: described(text, 'Which of the answers are checked.'),
  arpAllTargets: described(text, 'Whether one target or all have to answer.'),
  primary: described(text, 'The link that is used whenever it works.'),
  primaryReselect: described(text, 'When the primary link takes over again.'),
  failOverMac: described(text, 'Which hardware address the bond has after a change of links.'),
  adSelect: described(text, 'Which aggregate is used when there are several.'),
  miimon: described(unsigned(32), 'Milliseconds between looks at the state of the links.'),
  updelay: described(unsigned(32), 'Milliseconds after which a link that came up is used.'),
  downdelay: described(unsigned(32), 'Milliseconds after which a link that went down is left.'),
  arpInterval: described(unsigned(32), 'Milliseconds between questions to the targets.'),
  resendIgmp: described(unsigned(32), 'How often memberships of groups are reported after a change of links.'),
  minLinks: described(unsigned(32), 'How many links have to work for the bond to be up.'),
  lpInterval: described(unsigned(32), 'Seconds between packets that teach switches where we are.'),
  packetsPerSlave: described(unsigned(32), 'Packets on one link before the next one is used.'),
  numPeerNotif: described(unsigned(8), 'How often a change of links is announced to the neighbours.'),
  tlbDynamicLb: described(unsigned(8), 'Whether the load is rebalanced as it changes.'),
  allSlavesActive: described(unsigned(8), 'Whether packets that arrive twice are handed on.'),
  useCarrier: described(flag, 'Whether the carrier determines the state of a link.'),
  adActorSysPrio: described(unsigned(16), 'The priority in LACP packets.'),
  adUserPortKey: described(unsigned(16), 'The upper bits of the port key in LACP packets.'),
  peerNotifyDelay: described(unsigned(32), 'Milliseconds between those messages.'),
})

const vlan = section({
  addresses: described(listOf(text), 'Addresses with their prefix lengths.'),
  cidr: described(text, 'One address with its prefix length.'),
  routes: described(routes, 'Where packets go that leave by this link.'),
  dhcp: described(flag, 'Requests addresses from a DHCP server.'),
  vlanId: described(unsigned(16), 'The number of the VLAN.'),
  mtu: described(unsigned(32), 'The largest packet, in bytes.'),
  vip: described(vip, 'An address that one of several control planes holds at a time.'),
  dhcpOptions: described(dhcpOptions, 'How a DHCP server is queried.'),
})

const networkInterface = section({
  interface: described(text, 'The name of the link.'),
  deviceSelector: described(selector, 'Picks the link by what it is, in the place of its name.'),
  addresses: described(listOf(text), 'Addresses with their prefix lengths.'),
  cidr: described(text, 'One address with its prefix length.'),
  routes: described(routes, 'Where packets go that leave by this link.'),
  bond: described(bond, 'Joins several links into one.'),
  bridge: described(
    section({
      interfaces: described(listOf(text), 'The ports of the bridge.'),
      stp: described(section({ enabled: described(flag, 'Switches this on.') }), 'The spanning tree protocol.'),
      vlan: described(section({ vlanFiltering: described(flag, 'Keeps the VLANs of the ports apart.') }), 'How the bridge treats VLANs.'),
    }),
    'Joins links like a switch.',
  ),
  bridgePort: described(section({ master: described(text, 'The bridge.') }), 'Makes the link a port of a bridge.'),
  vlans: described(keyedListOf(vlan, 'vlanId'), 'VLANs on the link.'),
  mtu: described(integer, 'The largest packet, in bytes.'),
  dhcp: described(flag, 'Requests addresses from a DHCP server.'),
  ignore: described(flag, 'Leaves the link alone.'),
  dummy: described(flag, 'Makes the link: one that leads nowhere.'),
  dhcpOptions: described(dhcpOptions, 'How a DHCP server is queried.'),
  wireguard: described(
    section({
      privateKey: described(text, "The tunnel's private key, base64 of 32 bytes."),
      listenPort: described(integer, 'The UDP port others reach us at; chosen by the kernel when 0.'),
      firewallMark: described(integer, 'The mark packets of the tunnel leave with.'),
      peers: described(
        listOf(
          section({
            publicKey: described(text, 'The public key of the peer, base64 of 32 bytes.'),
            endpoint: described(text, 'Address and port of the peer.'),
            persistentKeepaliveInterval: described(duration, 'How often something is sent even if there is nothing to say.'),
            allowedIPs: described(listOf(text), 'Networks behind the peer.'),
          }),
        ),
        'Who is at the other end.',
      ),
    }),
    'Makes the link a WireGuard tunnel.',
  ),
  vip: described(vip, 'An address that one of several control planes holds at a time.'),
})

/** The schema of the section. */
export const machineNetwork = section({
  hostname: described(text, 'What the machine is called.'),
  interfaces: described(keyedListOf(networkInterface, 'interface', 'deviceSelector'), 'Links and what they are given.'),
  nameservers: described(listOf(text), 'DNS servers.'),
  searchDomains: described(listOf(text), 'Domains that short names are looked up in.'),
  extraHostEntries: described(
    listOf(section({ ip: described(text, 'The address.'), aliases: described(listOf(text), 'The names.') })),
    'Names with addresses of their own.',
  ),
  kubespan: described(section(kubeSpanFields), 'Joins all machines of the cluster by WireGuard.'),
  disableSearchDomain: described(flag, 'Looks short names up as they are.'),
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
  if (vip.equinixMetal && vip.hcloud) report.error([...path, 'vip'], 'one cloud moves the address: equinixMetal or hcloud')
  for (const cloud of ['equinixMetal', 'hcloud'] as const)
    if (vip[cloud] && !vip[cloud].apiToken) report.error([...path, 'vip', cloud, 'apiToken'], 'a token for the API is required')
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
