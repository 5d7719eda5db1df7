/**
 * Normalizes the links of a machine configuration: entries of `machine.network.interfaces` and link documents become one
 * form, which is all that the controllers read.
 */

import type * as v from 'valibot'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { DocumentKind, DocumentOf } from '../../../document/kind.ts'
import type { ConfigDocument } from '../../config/public.ts'
import { BondConfig } from '../documents/bond.ts'
import { BridgeConfig } from '../documents/bridge.ts'
import { DHCPv4Config, DHCPv6Config } from '../documents/dhcp.ts'
import { DummyLinkConfig } from '../documents/dummy-link.ts'
import { LinkConfig } from '../documents/link.ts'
import type { NetworkInterface } from '../documents/machine-network.ts'
import { HCloudVIPConfig, Layer2VIPConfig } from '../documents/vip.ts'
import { VLANConfig, VRFConfig } from '../documents/virtual-link.ts'
import { WireguardConfig } from '../documents/wireguard.ts'
import {
  bondSettings,
  type bridgeSettings,
  type vlanSettings,
  type vrfSettings,
  type wireguardSettings,
} from '../resources/link-settings.ts'
import type { OperatorSpec } from '../resources/operator-spec.ts'
import { canonicalDestination, canonicalIp, canonicalPrefix } from './canonical.ts'

type Out<S extends v.GenericSchema> = v.InferOutput<S>

type Resolve = (name: string) => string

/** DHCP client settings. */
export type DhcpSettings = NonNullable<SpecOf<typeof OperatorSpec>['dhcp4']>

/** One link and its settings. */
export interface DeclaredLink {
  name: string
  /** Kind of a link to create; '' for an existing one. */
  kind: '' | 'vlan' | 'bond' | 'bridge' | 'dummy' | 'wireguard' | 'vrf'
  up: boolean
  mtu: number
  multicast?: boolean
  hardwareAddr?: string
  vlan?: (Out<typeof vlanSettings> & { parent: string }) | undefined
  /** `primary` by name, since indexes are assigned by the kernel. */
  bond?: Omit<Out<typeof bondSettings>, 'primary'> & { primary?: string }
  bridge?: Out<typeof bridgeSettings> | undefined
  vrf?: Out<typeof vrfSettings>
  wireguard?: Out<typeof wireguardSettings>
  /** Links enslaved to this one, in order. */
  members: string[]
  /** The bridge this link becomes a port of. */
  bridgeMaster?: string
  addresses: { address: string; priority?: number }[]
  routes: { destination: string; gateway: string; source: string; metric?: number | undefined; mtu?: number | undefined; table: string }[]
  dhcp4?: DhcpSettings
  dhcp6?: DhcpSettings
  /** Shared addresses, with the cloud whose API moves the address where the local network does not. */
  vips: { ip: string; cloud?: { name: 'equinixMetal' | 'hcloud'; apiToken: string } }[]
}

/** A link that is up and has only the given settings. */
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

/** Normalizes the resolved interfaces of `machine.network` and the documents. `resolve` maps an alias to the link's name. */
export function declaredLinks(
  devices: readonly NetworkInterface[],
  documents: readonly Pick<ConfigDocument, 'kind' | 'value'>[],
  resolve: Resolve,
): DeclaredLink[] {
  const ofDocument = ({ kind, value }: Pick<ConfigDocument, 'kind' | 'value'>) => readers.get(kind)?.(value, resolve) ?? []
  return [...devices.flatMap((device) => ofDevice(device, resolve)), ...documents.flatMap(ofDocument)]
}

function link(name: string, more: Partial<DeclaredLink> = {}): DeclaredLink {
  return { name, kind: '', up: true, mtu: 0, members: [], addresses: [], routes: [], vips: [], ...more }
}

// ---- machine.network.interfaces

function ofDevice(device: NetworkInterface, resolve: Resolve): DeclaredLink[] {
  const name = device.interface ?? ''
  if (!name || device.ignore) return []
  const own = link(name, { mtu: device.mtu ?? 0, ...addressed(device) })
  if (device.bond) {
    own.kind = 'bond'
    own.bond = { ...oldBond(device.bond), ...(device.bond.primary && { primary: resolve(device.bond.primary) }) }
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
  const vlans = (device.vlans ?? []).map((vlan) =>
    link(`${name}.${vlan.vlanId}`, {
      kind: 'vlan',
      mtu: vlan.mtu ?? 0,
      vlan: { vlanID: vlan.vlanId ?? 0, vlanProtocol: '802.1q', parent: name },
      ...addressed(vlan),
    }),
  )
  return [own, ...vlans]
}

type Addressed = Pick<NetworkInterface, 'addresses' | 'cidr' | 'routes' | 'dhcp' | 'dhcpOptions' | 'vip'>

function addressed(device: Addressed): Partial<DeclaredLink> {
  const addresses = [...(device.cidr ? [device.cidr] : []), ...(device.addresses ?? [])]
  const options = device.dhcpOptions ?? {}
  const settings = (clientIdentifier: DhcpSettings['clientIdentifier']): DhcpSettings => ({
    routeMetric: options.routeMetric ?? defaultMetric,
    clientIdentifier,
  })
  const duid = (options.duidv6 ?? '').replaceAll(':', '')
  const name = device.vip?.equinixMetal ? 'equinixMetal' : 'hcloud'
  const apiToken = device.vip?.[name]?.apiToken
  return {
    addresses: addresses.map((address) => ({ address: canonicalPrefix(address) })),
    routes: (device.routes ?? []).map((route) => routeOf({ ...route, destination: route.network })),
    ...(device.dhcp && options.ipv4 !== false && { dhcp4: settings({ clientIdentifier: 'mac' }) }),
    ...(device.dhcp &&
      options.ipv6 === true && { dhcp6: settings(duid ? { clientIdentifier: 'duid', duidRawHex: duid } : { clientIdentifier: 'mac' }) }),
    vips: device.vip?.ip
      ? [
          {
            ip: canonicalIp(device.vip.ip),
            ...(apiToken && { cloud: { name, apiToken } }),
          },
        ]
      : [],
  }
}

type Route = NonNullable<DocumentOf<typeof LinkConfig>['routes']>[number]

function routeOf(route: Route): DeclaredLink['routes'][number] {
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

type Read<T> = (document: T, resolve: Resolve) => DeclaredLink[]

// The document container ensures that each value conforms to the schema of its kind.
const reads = <K extends DocumentKind>(kind: K, read: Read<DocumentOf<K>>): [DocumentKind, Read<unknown>] => [kind, read as Read<unknown>]

const made = (document: LinkFields, kind: DeclaredLink['kind'], more: Partial<DeclaredLink>) => [
  link(document.name ?? '', { kind, ...fields(document), ...more }),
]

const members = ({ links = [] }: { links?: string[] | undefined }, resolve: Resolve): string[] => links.map(resolve)

/** Converters of link documents by kind. */
const readers = new Map<DocumentKind, Read<unknown>>([
  reads(LinkConfig, (document, resolve) => [link(resolve(document.name ?? ''), fields(document))]),
  reads(DummyLinkConfig, (document) => made(document, 'dummy', {})),
  reads(VLANConfig, (document, resolve) => {
    const parent = resolve(document.parent ?? '')
    return made(document, 'vlan', { vlan: { vlanID: document.vlanID ?? 0, vlanProtocol: document.vlanMode ?? '802.1q', parent } })
  }),
  reads(BondConfig, (document, resolve) => made(document, 'bond', { bond: newBond(document), members: members(document, resolve) })),
  reads(BridgeConfig, (document, resolve) =>
    made(document, 'bridge', { bridge: bridge(document.stp?.enabled, document.vlan?.filtering), members: members(document, resolve) }),
  ),
  reads(VRFConfig, (document, resolve) =>
    made(document, 'vrf', { vrf: { table: document.table ?? '' }, members: members(document, resolve) }),
  ),
  reads(WireguardConfig, (document) => made(document, 'wireguard', { wireguard: wireguard(document) })),
  reads(DHCPv4Config, (document, resolve) => [link(resolve(document.name ?? ''), { dhcp4: dhcp(document) })]),
  reads(DHCPv6Config, (document, resolve) => [link(resolve(document.name ?? ''), { dhcp6: dhcp(document) })]),
  reads(Layer2VIPConfig, ({ name, link: on = '' }, resolve) => [link(resolve(on), { vips: [{ ip: canonicalIp(name) }] })]),
  reads(HCloudVIPConfig, ({ name, link: on = '', apiToken = '' }, resolve) => [
    link(resolve(on), { vips: [{ ip: canonicalIp(name), cloud: { name: 'hcloud', apiToken } }] }),
  ]),
])

type LinkFields = DocumentOf<typeof LinkConfig> & { hardwareAddr?: string | undefined }

function fields(document: LinkFields): Partial<DeclaredLink> {
  return {
    up: document.up ?? true,
    mtu: document.mtu ?? 0,
    ...(document.multicast !== undefined && { multicast: document.multicast }),
    ...(document.hardwareAddr && { hardwareAddr: document.hardwareAddr.toLowerCase() }),
    addresses: (document.addresses ?? []).map(({ address = '', routePriority }) => ({
      address: canonicalPrefix(address),
      ...(routePriority && { priority: routePriority }),
    })),
    routes: (document.routes ?? []).map(routeOf),
  }
}

function dhcp({ routeMetric, ignoreHostname, clientIdentifier = 'mac', duidRaw }: DocumentOf<typeof DHCPv4Config>): DhcpSettings {
  return {
    routeMetric: routeMetric ?? defaultMetric,
    ...(ignoreHostname && { skipHostnameRequest: true }),
    clientIdentifier: { clientIdentifier, ...(duidRaw && { duidRawHex: duidRaw.replaceAll(':', '').toLowerCase() }) },
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

/** Bond settings, completed with the defaults. */
export function bondOf(given: Readonly<Record<string, unknown>>): NonNullable<DeclaredLink['bond']> {
  const set = Object.entries(given).filter(([, value]) => value !== undefined && value !== '')
  return { ...bondDefaults, ...Object.fromEntries(set) }
}

/** The settings that both spellings of a bond share with the resource. */
const sameSettings = (given: object) =>
  Object.fromEntries(Object.entries(given).filter(([key]) => Object.hasOwn(bondSettings.entries, key)))

function oldBond(bond: NonNullable<NetworkInterface['bond']>) {
  const { primary, ...same } = sameSettings(bond)
  return bondOf({ ...same, arpIpTargets: bond.arpIPTarget?.map(canonicalIp), tlbLogicalLb: bond.tlbDynamicLb })
}

function newBond(bond: DocumentOf<typeof BondConfig>) {
  return bondOf({
    ...sameSettings(bond),
    mode: bond.bondMode,
    resendIgmp: bond.resendIGMP,
    adLacpActive: bond.adLACPActive ?? (bond.bondMode === '802.3ad' ? 'on' : undefined),
    peerNotifyDelay: bond.peerNotifDelay,
    arpIpTargets: bond.arpIpTargets?.map(canonicalIp),
    nsIp6Targets: bond.nsIp6Targets?.map(canonicalIp),
  })
}

function bridge(stp = false, filtering = false): DeclaredLink['bridge'] {
  return { stp: { enabled: stp }, vlan: { filteringEnabled: filtering } }
}

type Wireguard = Pick<DocumentOf<typeof WireguardConfig>, 'privateKey' | 'listenPort' | 'firewallMark' | 'peers'>

function wireguard({ privateKey, listenPort = 0, firewallMark = 0, peers = [] }: Wireguard): NonNullable<DeclaredLink['wireguard']> {
  return {
    privateKey,
    listenPort,
    firewallMark,
    peers: peers.map(({ publicKey = '', presharedKey = '', endpoint = '', persistentKeepaliveInterval = '0s', allowedIPs = [] }) => ({
      publicKey,
      presharedKey,
      endpoint,
      persistentKeepaliveInterval,
      allowedIPs: allowedIPs.map(canonicalPrefix),
    })),
  }
}
