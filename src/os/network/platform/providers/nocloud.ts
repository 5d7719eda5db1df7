/** Parses cloud-init network configuration (`network-config`), versions 1 and 2. */

import { bondValues } from '../../documents/bond.ts'
import { canonicalPrefix } from '../../link/canonical.ts'
import { bondOf, type DeclaredLink, type DhcpSettings, declaredLink } from '../../link/declared.ts'
import { dhcp, type KnownLink, linkWith, platformNetwork, route, withMask } from '../declare.ts'
import { type Loose, mappingOf } from '../loose.ts'
import { PlatformConfigError, type PlatformNetwork, parseMapping } from '../platform-config.ts'

interface Read {
  links: DeclaredLink[]
  nameServers: string[]
  searchDomains: string[]
}

const what = 'network-config'

/** Parses either version. An entry whose hardware address matches no link is skipped. Throws PlatformConfigError. */
export function readNetworkConfig(text: string, known: readonly KnownLink[], hostname = ''): PlatformNetwork {
  const given = parseMapping(text, what)
  const config: Loose = given.network && typeof given.network === 'object' ? mappingOf(given.network) : given // netplan wraps it
  if (config.version !== 1 && config.version !== 2)
    throw new PlatformConfigError(`${what}: version ${JSON.stringify(config.version)} is not supported: use 1 or 2`)
  const read = config.version === 1 ? version1(config, known) : version2(config, known)
  return platformNetwork({ ...read, hostname }, known)
}

function strings(value: unknown): string[] {
  const list = value === undefined || value === null ? [] : Array.isArray(value) ? value : [value]
  return list.map(String)
}

function mappings(value: unknown, where: string): [string, Loose][] {
  if (value === undefined || value === null) return []
  if (typeof value !== 'object') throw new PlatformConfigError(`${what}: ${where}: expected a list or a mapping`)
  return Object.entries(value).map(([key, entry]) => {
    if (entry === null || typeof entry !== 'object') throw new PlatformConfigError(`${what}: ${where}.${key}: expected a mapping`)
    return [key, entry as Loose]
  })
}

const number = (value: unknown) => (typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined)

const snake = (text: string) => text.replaceAll(/[-_](\w)/g, (_, letter: string) => letter.toUpperCase())
/** Alternative names of bond settings in netplan and cloud-init. */
const bondNames: Readonly<Record<string, string>> = {
  miiMonitorInterval: 'miimon',
  upDelay: 'updelay',
  downDelay: 'downdelay',
  transmitHashPolicy: 'xmitHashPolicy',
  arpIpTarget: 'arpIpTargets',
  failOverMacPolicy: 'failOverMac',
  primaryReselectPolicy: 'primaryReselect',
  gratuitousArp: 'numPeerNotif',
  packetsPerMember: 'packetsPerSlave',
}
const bondNumbers = new Set([
  'miimon',
  'updelay',
  'downdelay',
  'arpInterval',
  'minLinks',
  'numPeerNotif',
  'packetsPerSlave',
  'resendIgmp',
  'lpInterval',
])

function bond(parameters: Loose): NonNullable<DeclaredLink['bond']> {
  const settings: Record<string, unknown> = {}
  for (const [written, value] of Object.entries(parameters)) {
    const short = snake(written.replace(/^bond[-_]/, ''))
    const name = bondNames[short] ?? short
    const words: readonly string[] | undefined = bondValues[name as keyof typeof bondValues]
    if (words) {
      const word = words.includes(String(value)) ? String(value) : words[Number(value)]
      if (word === undefined)
        throw new PlatformConfigError(`${what}: bond parameter "${written}": "${value}" is not one of ${words.join(', ')}`)
      settings[name] = word
    } else if (bondNumbers.has(name)) {
      const amount = Number(value)
      if (!Number.isInteger(amount) || amount < 0)
        throw new PlatformConfigError(`${what}: bond parameter "${written}": "${value}" is not a number`)
      settings[name] = amount
    } else if (name === 'primary') settings.primary = String(value)
    else if (name === 'arpIpTargets') settings.arpIpTargets = strings(value)
    else throw new PlatformConfigError(`${what}: bond parameter "${written}" is not known`)
  }
  return bondOf(settings)
}

// ---- version 1: a list of links and servers

function version1(config: Loose, known: readonly KnownLink[]): Read {
  const read: Read = { links: [], nameServers: [], searchDomains: [] }
  const named = new Map<string, string>()
  for (const [place, entry] of mappings(config.config, 'config')) {
    const own = subnets(entry, `config.${place}`, read)
    const name = String(entry.name ?? '')
    switch (entry.type) {
      case 'physical': {
        const mac = String(entry.mac_address ?? '')
        const found = mac ? linkWith(mac, known)?.name : name
        if (!found) break
        named.set(name, found)
        read.links.push(declaredLink(found, own))
        break
      }
      case 'bond': {
        const members = strings(entry.bond_interfaces).map((member) => named.get(member) ?? member)
        read.links.push(declaredLink(name, { ...own, kind: 'bond', bond: bond(mappingOf(entry.params)), members }))
        break
      }
      case 'bridge': {
        const members = strings(entry.bridge_interfaces).map((member) => named.get(member) ?? member)
        const stp = { enabled: ['on', 'true', '1'].includes(String(mappingOf(entry.params).bridge_stp ?? '')) }
        read.links.push(declaredLink(name, { ...own, kind: 'bridge', bridge: { stp, vlan: { filteringEnabled: false } }, members }))
        break
      }
      case 'vlan': {
        const parent = named.get(String(entry.vlan_link ?? '')) ?? String(entry.vlan_link ?? '')
        read.links.push(declaredLink(name, { ...own, kind: 'vlan', vlan: vlan(entry.vlan_id, parent, name) }))
        break
      }
      case 'nameserver':
        read.nameServers.push(...strings(entry.address))
        read.searchDomains.push(...strings(entry.search))
        break
      case 'route':
        throw new PlatformConfigError(`${what}: config.${place}: a route without a link: write it under the link's subnet`)
      default:
        throw new PlatformConfigError(`${what}: config.${place}: type ${JSON.stringify(entry.type)} is not known`)
    }
  }
  return read
}

function vlan(id: unknown, parent: string, name: string): DeclaredLink['vlan'] {
  const vlanID = Number(id)
  if (!(Number.isInteger(vlanID) && vlanID >= 1 && vlanID <= 4094) || !parent)
    throw new PlatformConfigError(`${what}: VLAN "${name}": a number from 1 to 4094 and a link are required`)
  return { vlanID, vlanProtocol: '802.1q', parent }
}

function subnets(entry: Loose, where: string, read: Read): Partial<DeclaredLink> {
  const own: Partial<DeclaredLink> & Pick<DeclaredLink, 'addresses' | 'routes'> = { mtu: number(entry.mtu) ?? 0, addresses: [], routes: [] }
  for (const [place, subnet] of mappings(entry.subnets, `${where}.subnets`)) {
    switch (subnet.type) {
      case 'dhcp':
      case 'dhcp4':
        own.dhcp4 = dhcp
        break
      case 'dhcp6':
      case 'ipv6_dhcpv6-stateful':
        own.dhcp6 = dhcp
        break
      case 'static':
      case 'static6': {
        if (typeof subnet.address !== 'string') throw new PlatformConfigError(`${what}: ${where}.subnets.${place}: an address is required`)
        own.addresses.push({ address: withMask(subnet.address, subnet.netmask ?? subnet.prefix) })
        if (subnet.gateway) own.routes.push(route('', String(subnet.gateway)))
        for (const [, one] of mappings(subnet.routes, `${where}.subnets.${place}.routes`)) {
          const to = String(one.network ?? one.destination ?? '')
          own.routes.push(route(to && withMask(to, one.netmask ?? one.prefix), String(one.gateway ?? ''), one.metric))
        }
        break
      }
      case 'manual':
      case 'ipv6_slaac':
        break // handled by the kernel
      default:
        throw new PlatformConfigError(`${what}: ${where}.subnets.${place}: type ${JSON.stringify(subnet.type)} is not known`)
    }
    read.nameServers.push(...strings(subnet.dns_nameservers))
    read.searchDomains.push(...strings(subnet.dns_search))
  }
  return own
}

// ---- version 2: mappings by kind

function version2(config: Loose, known: readonly KnownLink[]): Read {
  const read: Read = { links: [], nameServers: [], searchDomains: [] }
  const named = new Map<string, string>()
  const realName = (id: string) => named.get(id) ?? id
  for (const [id, entry] of mappings(config.ethernets, 'ethernets')) {
    const found = matching(id, entry, known)
    if (found === undefined) continue
    named.set(id, found)
    read.links.push(declaredLink(found, settings(entry, `ethernets.${id}`, read)))
  }
  for (const [id, entry] of mappings(config.bonds, 'bonds')) {
    const own = settings(entry, `bonds.${id}`, read)
    read.links.push(
      declaredLink(id, { ...own, kind: 'bond', bond: bond(mappingOf(entry.parameters)), members: strings(entry.interfaces).map(realName) }),
    )
  }
  for (const [id, entry] of mappings(config.bridges, 'bridges')) {
    const bridge = { stp: { enabled: mappingOf(entry.parameters).stp === true }, vlan: { filteringEnabled: false } }
    read.links.push(
      declaredLink(id, {
        ...settings(entry, `bridges.${id}`, read),
        kind: 'bridge',
        bridge,
        members: strings(entry.interfaces).map(realName),
      }),
    )
  }
  for (const [id, entry] of mappings(config.vlans, 'vlans'))
    read.links.push(
      declaredLink(id, {
        ...settings(entry, `vlans.${id}`, read),
        kind: 'vlan',
        vlan: vlan(entry.id, realName(String(entry.link ?? '')), id),
      }),
    )
  return read
}

/** The link an entry refers to: by its match conditions, else by its name. */
function matching(id: string, entry: Loose, known: readonly KnownLink[]): string | undefined {
  if (!entry.match) return id
  const match = mappingOf(entry.match)
  const mac = match.macaddress === undefined ? undefined : String(match.macaddress)
  const fits = (pattern: unknown, text = '') => pattern === undefined || strings(pattern).some((one) => new Bun.Glob(one).match(text))
  return known.find(
    (one) => (mac === undefined || linkWith(mac, [one]) !== undefined) && fits(match.name, one.name) && fits(match.driver, one.driver),
  )?.name
}

function settings(entry: Loose, where: string, read: Read): Partial<DeclaredLink> {
  const routes = mappings(entry.routes, `${where}.routes`).map(([, one]) =>
    route(String(one.to ?? ''), String(one.via ?? ''), one.metric, one.mtu),
  )
  for (const key of ['gateway4', 'gateway6']) if (entry[key]) routes.push(route('', String(entry[key])))
  read.nameServers.push(...strings(mappingOf(entry.nameservers).addresses))
  read.searchDomains.push(...strings(mappingOf(entry.nameservers).search))
  const metric = (overrides: unknown): DhcpSettings => ({
    ...dhcp,
    routeMetric: number(mappingOf(overrides)['route-metric']) ?? dhcp.routeMetric,
  })
  return {
    mtu: number(entry.mtu) ?? 0,
    addresses: strings(entry.addresses).map((address) => ({ address: canonicalPrefix(address) })),
    routes,
    ...(Boolean(entry.macaddress) && { hardwareAddr: String(entry.macaddress).toLowerCase() }),
    ...(isOn(entry.dhcp4) && { dhcp4: metric(entry['dhcp4-overrides']) }),
    ...(isOn(entry.dhcp6) && { dhcp6: metric(entry['dhcp6-overrides']) }),
  }
}

const isOn = (value: unknown) => value === true || value === 'yes' || value === 'true'
