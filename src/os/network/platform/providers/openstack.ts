/** OpenStack: metadata on a config drive (`config-2`) or over HTTP; links and networks in `network_data.json`. */
import { parseIp } from '../../../../wire/ip.ts'
import { isIPv6, maskLength } from '../../../../wire/prefix.ts'
import { bondOf, type DeclaredLink, declaredLink } from '../../link/declared.ts'
import { dhcp, type KnownLink, linkWith, platformNetwork, route, withMask } from '../declare.ts'
import { type Loose, listOf, metadataOf, mtuOf, readJson, textOf, textsOf } from '../loose.ts'
import type { Platform, PlatformTransport } from '../platform.ts'
import { PlatformConfigError } from '../platform-config.ts'

const base = 'http://169.254.169.254'
const labels = ['config-2', 'CONFIG-2']
const folder = 'openstack/latest'

async function read({ fetch, disk }: Pick<PlatformTransport, 'fetch' | 'disk'>, name: string): Promise<string | undefined> {
  const files = await disk(labels, [`${folder}/${name}`])
  return files?.get(`${folder}/${name}`) ?? (await fetch(`${base}/${folder}/${name}`))
}

/** Reads links and name servers from `network_data.json`. */
export function readNetworkData(data: Loose, known: readonly KnownLink[]): { links: DeclaredLink[]; nameServers: string[] } {
  const links = new Map<string, DeclaredLink>()
  const entries = listOf(data.links)
  const nameServers = listOf(data.services).flatMap(({ type, address }) => (type === 'dns' ? [textOf(address)] : []))
  const add = (id: unknown, link: DeclaredLink | undefined) => link && links.set(textOf(id), link)
  for (const entry of entries) {
    if (entry.type === 'bond' || entry.type === 'vlan') continue
    const nic = linkWith(entry.ethernet_mac_address, known)
    add(entry.id, nic && declaredLink(nic.name, { mtu: mtuOf(entry.mtu) }))
  }
  let bonds = 0
  for (const entry of entries)
    if (entry.type === 'bond') {
      const name = `bond${bonds++}`
      const members = textsOf(entry.bond_links).flatMap((id) => links.get(id)?.name ?? [])
      add(entry.id, declaredLink(name, { kind: 'bond', mtu: mtuOf(entry.mtu), bond: bond(entry), members, ...own(entry) }))
    }
  for (const entry of entries)
    if (entry.type === 'vlan') {
      const parent = links.get(textOf(entry.vlan_link))?.name
      const vlanID = Number(entry.vlan_id)
      if (!parent) continue // its physical interface does not exist
      if (!(Number.isInteger(vlanID) && vlanID >= 1 && vlanID <= 4094))
        throw new PlatformConfigError(
          `openstack network data: VLAN "${textOf(entry.id)}": ${JSON.stringify(entry.vlan_id)} is not a VLAN ID`,
        )
      const vlan = { vlanID, vlanProtocol: '802.1q', parent } as const
      add(entry.id, declaredLink(`${parent}.${vlanID}`, { kind: 'vlan', mtu: mtuOf(entry.mtu), vlan }))
    }
  for (const network of listOf(data.networks)) {
    const link = links.get(textOf(network.link))
    if (!link) continue
    nameServers.push(...listOf(network.services).flatMap(({ type, address }) => (type === 'dns' ? [textOf(address)] : [])))
    attach(link, network)
  }
  return { links: [...links.values()], nameServers: [...nameServers, ...textsOf(data.dns)] }
}

function attach(link: DeclaredLink, network: Loose): void {
  switch (network.type) {
    case 'ipv4_dhcp':
      link.dhcp4 = dhcp
      break
    case 'ipv6_dhcp':
    case 'ipv6_dhcpv6-stateful':
      link.dhcp6 = dhcp
      break
    case 'ipv4':
    case 'ipv6':
      link.addresses.push({ address: withMask(textOf(network.ip_address), network.netmask ? lengthOf(network.netmask) : undefined) })
      if (textOf(network.gateway)) link.routes.push(route('', textOf(network.gateway)))
      break
    default: // SLAAC is handled by the kernel
  }
  for (const one of listOf(network.routes)) {
    const to = textOf(one.network)
    const everywhere = /^(0\.0\.0\.0|::)$/.test(to) && /^(0\.0\.0\.0|::|0)?$/.test(textOf(one.netmask))
    link.routes.push(route(everywhere ? '' : withMask(to, one.netmask ? lengthOf(one.netmask) : undefined), textOf(one.gateway)))
  }
}

/** Prefix length of a mask; IPv6 masks may be written as addresses: `ffff:ffff:ffff:ffff::`. */
function lengthOf(mask: unknown): string {
  const text = textOf(mask)
  if (!isIPv6(text)) return text
  const bytes = parseIp(text)
  const length = bytes && maskLength(bytes)
  if (length === undefined) throw new PlatformConfigError(`openstack network data: "${text}" is not a netmask`)
  return String(length)
}

function bond(entry: Loose) {
  const number = (value: unknown) => (textOf(value) === '' ? undefined : Number(textOf(value)))
  return bondOf({
    mode: textOf(entry.bond_mode) || undefined,
    xmitHashPolicy: textOf(entry.bond_xmit_hash_policy) || undefined,
    miimon: number(entry.bond_miimon) ?? 100,
  })
}

const own = (entry: Loose) => (textOf(entry.ethernet_mac_address) ? { hardwareAddr: textOf(entry.ethernet_mac_address).toLowerCase() } : {})

export const openstack: Platform = {
  async network(transport) {
    const meta = readJson((await read(transport, 'meta_data.json')) ?? '{}', 'openstack metadata')
    const dataText = await read(transport, 'network_data.json')
    const found = dataText ? readNetworkData(readJson(dataText, 'openstack network data'), transport.links) : { links: [], nameServers: [] }
    // From the EC2-compatible service, which a config drive does not have.
    const old = async (path: string) => (await transport.fetch(`${base}/latest/meta-data/${path}`).catch(() => undefined))?.trim() ?? ''
    const [instanceType, address] = await Promise.all([old('instance-type'), old('public-ipv4')])
    const hostname = textOf(meta.hostname) || textOf(meta.name)
    const id = textOf(meta.uuid)
    return platformNetwork(
      {
        ...found,
        hostname,
        externalIPs: [address],
        metadata: metadataOf({
          platform: 'openstack',
          hostname,
          zone: textOf(meta.availability_zone),
          instanceType,
          instanceId: id,
          providerId: id && `openstack:///${id}`,
        }),
      },
      transport.links,
    )
  },
  async userData(transport) {
    return (await read(transport, 'user_data')) || undefined
  },
}
