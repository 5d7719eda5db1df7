/** Builds platform network configurations from links, addresses and routes. */
import { formatIp, parseIp } from '../../../wire/ip.ts'
import { addressOnly, maskLength } from '../../../wire/prefix.ts'
import { addressSpecs, linkSpecs, operatorSpecs, routeSpecs } from '../declared-specs.ts'
import { splitName } from '../full-name.ts'
import { canonicalDestination, canonicalPrefix } from '../link/canonical.ts'
import type { DeclaredLink, DhcpSettings } from '../link/declared.ts'
import { PlatformConfigError, type PlatformNetwork } from './platform-config.ts'

/** A link of the machine, with the fields by which configurations select it. */
export interface KnownLink {
  name: string
  hardwareAddress: string
  index: number
  driver?: string
}

/** Everything a platform can provide. */
export interface PlatformSettings {
  readonly links?: readonly DeclaredLink[]
  readonly nameServers?: readonly string[]
  readonly searchDomains?: readonly string[]
  readonly timeServers?: readonly string[]
  /** With or without domain. */
  readonly hostname?: string | undefined
  /** Public addresses that are mapped to the machine but assigned to no link. */
  readonly externalIPs?: readonly string[]
  readonly metadata?: PlatformNetwork['metadata']
}

/** Builds the specs of the platform layer. Throws PlatformConfigError for invalid addresses. */
export function platformNetwork(settings: PlatformSettings, known: readonly KnownLink[]): PlatformNetwork {
  const { links = [], nameServers = [], searchDomains = [], timeServers = [], hostname = '', externalIPs = [], metadata } = settings
  const layer = 'platform'
  const indexOf = (name: string) => known.find((one) => one.name === name)?.index
  const all = <T>(specs: Map<string, T>) => [...specs.values()]
  const servers = unique(nameServers)
  const domains = unique(searchDomains)
  for (const { name, addresses, routes } of links) {
    for (const { address } of addresses) mustBe(addressOnly(address), `an address of "${name}"`)
    for (const { gateway } of routes) if (gateway !== '') mustBe(gateway, `a gateway of "${name}"`)
  }
  for (const server of servers) mustBe(server, 'a name server')
  const external = unique(externalIPs)
  for (const address of external) mustBe(address, 'an external address')
  return {
    links: all(linkSpecs(links, layer, indexOf)),
    addresses: all(addressSpecs(links, layer)),
    routes: all(routeSpecs(links, layer)),
    operators: all(operatorSpecs(links, layer)),
    hostnames: hostname ? [{ ...splitName(hostname), layer }] : [],
    resolvers: servers.length + domains.length > 0 ? [{ dnsServers: servers, searchDomains: domains, layer }] : [],
    timeServers: timeServers.length > 0 ? [{ timeServers: unique(timeServers), layer }] : [],
    externalIPs: external,
    ...(metadata && { metadata }),
  }
}

const unique = (list: readonly string[]) => [...new Set(list.filter((one) => one !== ''))]

function mustBe(address: string, what: string): void {
  if (!parseIp(address)) throw new PlatformConfigError(`platform: ${what}: ${JSON.stringify(address)} is not an address`)
}

/** Default DHCP settings on platforms. */
export const dhcp: DhcpSettings = { routeMetric: 1024, clientIdentifier: { clientIdentifier: 'mac' } }

/** The default DHCP settings with another route metric. */
export const dhcpAt = (routeMetric: number): DhcpSettings => ({ ...dhcp, routeMetric })

/** The link with a hardware address, in any notation. */
export function linkWith(mac: unknown, known: readonly KnownLink[]): KnownLink | undefined {
  const wanted = String(mac ?? '')
    .toLowerCase()
    .replaceAll(/[^0-9a-f]/g, '')
  return wanted === '' ? undefined : known.find(({ hardwareAddress }) => hardwareAddress.replaceAll(':', '') === wanted)
}

/** An address in canonical form, undefined if invalid. */
export function canonicalAddress(value: unknown): string | undefined {
  const bytes = typeof value === 'string' ? parseIp(value.trim()) : undefined
  return bytes && formatIp(bytes)
}

/** An address with its prefix length, taken from itself, a number or a netmask. */
export function withMask(address: string, mask: unknown): string {
  if (address.includes('/') || mask === undefined) return canonicalPrefix(address)
  const text = String(mask)
  if (/^\d{1,3}$/.test(text)) return canonicalPrefix(`${address}/${text}`)
  const bytes = parseIp(text)
  const length = bytes && maskLength(bytes)
  if (length === undefined) throw new PlatformConfigError(`network configuration: "${text}" is not a netmask`)
  return canonicalPrefix(`${address}/${length}`)
}

/** A route of a declared link. */
export type Route = DeclaredLink['routes'][number]

const number = (value: unknown) => (typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined)

/** Builds a route; the default route if the destination is empty or `default`. */
export function route(destination: string, gateway: string, metric?: unknown, mtu?: unknown): Route {
  const dst = destination === 'default' || destination === '' ? '' : canonicalDestination(destination)
  return {
    destination: dst,
    gateway: canonicalAddress(gateway) ?? gateway,
    source: '',
    table: 'main',
    metric: number(metric) || undefined,
    mtu: number(mtu) || undefined,
  }
}
