/**
 * Links as a machine configuration declares them: the entries of `machine.network.interfaces` and the documents of
 * today in one form, so that each controller reads only that.
 */
import type * as v from 'valibot'
import type { SpecOf } from '../../cosi/resource.ts'
import { formatIp, parseIp } from '../../wire/ip.ts'
import type { bondSettings, bridgeSettings, vlanSettings, vrfSettings, wireguardSettings } from './resources/link-settings.ts'
import type { OperatorSpec } from './resources/operator-spec.ts'

type Out<S extends v.GenericSchema> = v.InferOutput<S>
type Loose = Readonly<Record<string, any>>

/** How a client of DHCP should behave. */
export type DhcpSettings = NonNullable<SpecOf<typeof OperatorSpec>['dhcp4']>

/** One link and what it should have. */
export interface DeclaredLink {
  name: string
  /** Kind of a link that is made; '' for one that is there. */
  kind: '' | 'vlan' | 'bond' | 'bridge' | 'dummy' | 'wireguard' | 'vrf'
  up: boolean
  mtu: number
  multicast?: boolean
  hardwareAddr?: string
  vlan?: Out<typeof vlanSettings> & { parent: string }
  /** `primary` by name, since numbers are the kernel's. */
  bond?: Omit<Out<typeof bondSettings>, 'primary'> & { primary?: string }
  bridge?: Out<typeof bridgeSettings>
  vrf?: Out<typeof vrfSettings>
  wireguard?: Out<typeof wireguardSettings>
  /** Links that become part of this one, in order. */
  members: string[]
  /** The bridge this link becomes a port of. */
  bridgeMaster?: string
  addresses: { address: string; priority?: number }[]
  routes: { destination: string; gateway: string; source: string; metric?: number; mtu?: number; table: string }[]
  dhcp4?: DhcpSettings
  dhcp6?: DhcpSettings
  /** A shared address; `refused` names a kind that moves it by a cloud's API. */
  vips: { ip: string; refused?: string }[]
}

/** A link that is up and has nothing but what is said. */
export const declaredLink = (name: string, more: Partial<DeclaredLink> = {}): DeclaredLink => ({
  name,
  kind: '',
  up: true,
  mtu: 0,
  members: [],
  addresses: [],
  routes: [],
  vips: [],
  ...more,
})

const defaultMetric = 1024

/** Reads the resolved interfaces of `machine.network` and the documents; `resolve` gives a link's own name. */
export function declaredLinks(devices: readonly Loose[], documents: readonly Loose[], resolve: (name: string) => string): DeclaredLink[] {
  return [...devices.flatMap((device) => ofDevice(device, resolve)), ...documents.flatMap((document) => ofDocument(document, resolve))]
}

function link(name: string, more: Partial<DeclaredLink> = {}): DeclaredLink {
  return { name, kind: '', up: true, mtu: 0, members: [], addresses: [], routes: [], vips: [], ...more }
}

/** An address with its prefix length, as the kernel writes it; a single one without. */
export function canonicalPrefix(text: string): string {
  const [ip = '', length] = text.split('/')
  const bytes = parseIp(ip)
  return bytes ? `${formatIp(bytes)}/${length ?? bytes.length * 8}` : text
}

/** A destination as the kernel writes it: host bits cleared, '' for the default route. */
export function canonicalDestination(text: string): string {
  const [ip = '', length] = text.split('/')
  const bytes = parseIp(ip)
  if (!bytes) return text
  const bits = length === undefined ? bytes.length * 8 : Number(length)
  if (bits === 0) return ''
  const masked = bytes.map((byte, index) => byte & (0xff00 >> Math.max(0, Math.min(8, bits - index * 8))))
  return `${formatIp(masked)}/${bits}`
}

const canonicalIp = (text = '') => {
  const bytes = parseIp(text)
  return bytes ? formatIp(bytes) : text
}

// ---- machine.network.interfaces

function ofDevice(device: Loose, resolve: (name: string) => string): DeclaredLink[] {
  const name: string = device.interface ?? ''
  if (!name || device.ignore) return []
  const own = link(name, { mtu: device.mtu ?? 0, ...addressed(device) })
  if (device.bond) {
    own.kind = 'bond'
    own.bond = { ...oldBond(device.bond), ...(device.bond.primary ? { primary: resolve(device.bond.primary) } : {}) }
    own.members = (device.bond.interfaces ?? []).map(resolve)
  } else if (device.bridge) {
    own.kind = 'bridge'
    own.bridge = bridge(device.bridge.stp?.enabled, device.bridge.vlan?.vlanFiltering)
    own.members = (device.bridge.interfaces ?? []).map(resolve)
  } else if (device.wireguard) {
    own.kind = 'wireguard'
    own.wireguard = wireguard(device.wireguard)
  } else if (device.dummy) own.kind = 'dummy'
  if (device.bridgePort?.master) own.bridgeMaster = device.bridgePort.master
  const vlans = (device.vlans ?? []).map((vlan: Loose) =>
    link(`${name}.${vlan.vlanId}`, {
      kind: 'vlan',
      mtu: vlan.mtu ?? 0,
      vlan: { vlanID: vlan.vlanId ?? 0, vlanProtocol: '802.1q', parent: name },
      ...addressed(vlan),
    }),
  )
  return [own, ...vlans]
}

function addressed(device: Loose): Partial<DeclaredLink> {
  const addresses: string[] = [...(device.cidr ? [device.cidr] : []), ...(device.addresses ?? [])]
  const options = device.dhcpOptions ?? {}
  const settings = (clientIdentifier: DhcpSettings['clientIdentifier']): DhcpSettings => ({
    routeMetric: options.routeMetric ?? defaultMetric,
    clientIdentifier,
  })
  const duid: string = String(options.duidv6 ?? '').replaceAll(':', '')
  return {
    addresses: addresses.map((address) => ({ address: canonicalPrefix(address) })),
    routes: (device.routes ?? []).map((route: Loose) => routeOf({ ...route, destination: route.network })),
    ...(device.dhcp && options.ipv4 !== false ? { dhcp4: settings({ clientIdentifier: 'mac' }) } : {}),
    ...(device.dhcp && options.ipv6 === true
      ? { dhcp6: settings(duid ? { clientIdentifier: 'duid', duidRawHex: duid } : { clientIdentifier: 'mac' }) }
      : {}),
    vips: device.vip?.ip
      ? [
          {
            ip: canonicalIp(device.vip.ip),
            ...(device.vip.equinixMetal ? { refused: 'equinixMetal' } : device.vip.hcloud ? { refused: 'hcloud' } : {}),
          },
        ]
      : [],
  }
}

function routeOf(route: Loose): DeclaredLink['routes'][number] {
  return {
    destination: route.destination ? canonicalDestination(route.destination) : '',
    gateway: canonicalIp(route.gateway),
    source: canonicalIp(route.source),
    metric: route.metric || undefined,
    mtu: route.mtu || undefined,
    table: route.table && route.table !== 'unspec' ? route.table : 'main',
  }
}

// ---- documents

function ofDocument(document: Loose, resolve: (name: string) => string): DeclaredLink[] {
  const name: string = document.name ?? ''
  const made = (kind: DeclaredLink['kind'], more: Partial<DeclaredLink>) => [link(name, { kind, ...fields(document), ...more })]
  const members = (): string[] => (document.links ?? []).map(resolve)
  switch (document.kind) {
    case 'LinkConfig':
      return [link(resolve(name), fields(document))]
    case 'DummyLinkConfig':
      return made('dummy', {})
    case 'VLANConfig': {
      const parent = resolve(document.parent ?? '')
      return made('vlan', { vlan: { vlanID: document.vlanID ?? 0, vlanProtocol: document.vlanMode ?? '802.1q', parent } })
    }
    case 'BondConfig':
      return made('bond', { bond: newBond(document), members: members() })
    case 'BridgeConfig':
      return made('bridge', { bridge: bridge(document.stp?.enabled, document.vlan?.filtering), members: members() })
    case 'VRFConfig':
      return made('vrf', { vrf: { table: document.table ?? '' }, members: members() })
    case 'WireguardConfig':
      return made('wireguard', { wireguard: wireguard(document) })
    case 'DHCPv4Config':
      return [link(resolve(name), { dhcp4: dhcp(document) })]
    case 'DHCPv6Config':
      return [link(resolve(name), { dhcp6: dhcp(document) })]
    case 'Layer2VIPConfig':
      return [link(resolve(document.link ?? ''), { vips: [{ ip: canonicalIp(name) }] })]
    case 'HCloudVIPConfig':
      return [link(resolve(document.link ?? ''), { vips: [{ ip: canonicalIp(name), refused: 'hcloud' }] })]
    default:
      return []
  }
}

function fields(document: Loose): Partial<DeclaredLink> {
  return {
    up: document.up ?? true,
    mtu: document.mtu ?? 0,
    ...(document.multicast === undefined ? {} : { multicast: document.multicast }),
    ...(document.hardwareAddr ? { hardwareAddr: document.hardwareAddr.toLowerCase() } : {}),
    addresses: (document.addresses ?? []).map(({ address = '', routePriority }: Loose) => ({
      address: canonicalPrefix(address),
      ...(routePriority ? { priority: routePriority } : {}),
    })),
    routes: (document.routes ?? []).map(routeOf),
  }
}

function dhcp({ routeMetric, ignoreHostname, clientIdentifier = 'mac', duidRaw }: Loose): DhcpSettings {
  return {
    routeMetric: routeMetric ?? defaultMetric,
    ...(ignoreHostname ? { skipHostnameRequest: true } : {}),
    clientIdentifier: { clientIdentifier, ...(duidRaw ? { duidRawHex: duidRaw.replaceAll(':', '').toLowerCase() } : {}) },
  }
}

// ---- kinds

const bondDefaults = {
  mode: 'balance-rr',
  xmitHashPolicy: 'layer2',
  lacpRate: 'slow',
  arpValidate: 'none',
  arpAllTargets: 'any',
  primaryReselect: 'always',
  failOverMac: 'none',
}

/** Settings of a bond of which only some are said. */
export function bondOf(given: Loose): NonNullable<DeclaredLink['bond']> {
  const said = Object.entries(given).filter(([, value]) => value !== undefined && value !== '')
  return { ...bondDefaults, ...Object.fromEntries(said) }
}

function oldBond({ interfaces, deviceSelectors, arpIPTarget, tlbDynamicLb, adActorSystem, primary, ...same }: Loose) {
  return bondOf({ ...same, arpIpTargets: arpIPTarget?.map(canonicalIp), tlbLogicalLb: tlbDynamicLb })
}

function newBond({ bondMode, resendIGMP, adLACPActive, peerNotifDelay, arpIpTargets, nsIp6Targets, ...rest }: Loose) {
  const { kind, apiVersion, name, hardwareAddr, links, up, mtu, addresses, routes, multicast, ...same } = rest
  return bondOf({
    ...same,
    mode: bondMode,
    resendIgmp: resendIGMP,
    adLacpActive: adLACPActive ?? (bondMode === '802.3ad' ? 'on' : undefined),
    peerNotifyDelay: peerNotifDelay,
    arpIpTargets: arpIpTargets?.map(canonicalIp),
    nsIp6Targets: nsIp6Targets?.map(canonicalIp),
  })
}

function bridge(stp = false, filtering = false): DeclaredLink['bridge'] {
  return { stp: { enabled: stp }, vlan: { filteringEnabled: filtering } }
}

function wireguard({ privateKey, listenPort = 0, firewallMark = 0, peers = [] }: Loose): NonNullable<DeclaredLink['wireguard']> {
  return {
    privateKey,
    listenPort,
    firewallMark,
    peers: peers.map(
      ({ publicKey = '', presharedKey = '', endpoint = '', persistentKeepaliveInterval = '0s', allowedIPs = [] }: Loose) => ({
        publicKey,
        presharedKey,
        endpoint,
        persistentKeepaliveInterval,
        allowedIPs: allowedIPs.map(canonicalPrefix),
      }),
    ),
  }
}
