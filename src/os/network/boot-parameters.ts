/** Parses the network parameters of the kernel command line: `ip=`, `bond=`, `vlan=`, `bridge=`, names and servers (Documentation/admin-guide/nfs/nfsroot, dracut.cmdline(7)). */

import type { Parameter } from '../../wire/command-line.ts'
import { parameterValues } from '../../wire/command-line.ts'
import { messageOf } from '../../wire/error-message.ts'
import { unbracketed } from '../../wire/host-port.ts'
import { formatIp, parseIp } from '../../wire/ip.ts'
import { isIPv6, maskLength } from '../../wire/prefix.ts'
import type { BootNetwork } from './boot-network.ts'
import { bondValues } from './documents/bond.ts'
import { hostnameProblem } from './documents/hostname.ts'
import { bondOf, type DeclaredLink, declaredLink } from './link/declared.ts'

/** The parsed parameters, and one message for each invalid one. */
export interface ParsedBoot extends BootNetwork {
  readonly complaints: readonly string[]
}

/** One `ip=` parameter. Without a device it applies to the first link. */
interface Addressing {
  device: string
  dhcp: boolean
  address?: string
  gateway?: string
}

/** Parses the parameters. Invalid ones are skipped and listed in `complaints`. */
export function bootNetwork(parameters: readonly Parameter[]): ParsedBoot {
  const complaints: string[] = []
  const each = <T>(name: string, read: (value: string) => T | undefined, { first = false } = {}): T[] =>
    parameterValues(parameters, name)
      .slice(0, first ? 1 : undefined)
      .flatMap((value) => {
        try {
          const found = read(value)
          return found === undefined ? [] : [found]
        } catch (error) {
          complaints.push(`kernel parameter "${name}=${value}": ${messageOf(error)}`)
          return []
        }
      })
  const names = new Map<string, string>()
  const made = [
    ...each('bond', readBond, { first: true }),
    ...each('bridge', readBridge),
    ...each('vlan', (value) => readVlan(value, names), { first: true }),
  ]
  const spoken: { hostname?: string; servers: string[]; times: string[] } = { servers: [], times: [] }
  const addressing = each('ip', (value) => readAddressing(value, spoken))
  const wrong = spoken.hostname && hostnameProblem(spoken.hostname)
  if (wrong) complaints.push(`kernel parameter "ip": the host name: ${wrong}`)
  // That of a parameter of its own is reported with the other parameters of the machine.
  const named = [parameterValues(parameters, 'talos.hostname').at(-1), spoken.hostname]
  const hostname = named.find((name) => name && hostnameProblem(name) === undefined)
  return {
    complaints,
    ...(hostname && { hostname }),
    nameServers: [...spoken.servers, ...each('nameserver', (value) => ip(value, 'a name server'))],
    timeServers: spoken.times,
    ignored: new Set(parameterValues(parameters, 'talos.network.interface.ignore')),
    links(present) {
      const first = present
        .filter(({ spec }) => spec.type !== 'loopback')
        .map(({ metadata }) => metadata.id)
        .sort()[0]
      const addressed = addressing.flatMap(({ device, dhcp, address, gateway }) => {
        const name = device ? (names.get(device) ?? device) : first
        if (!name) return [] // the event of the link's creation triggers a reconcile
        return [
          declaredLink(name, {
            ...(dhcp && { dhcp4: { routeMetric: 1024, clientIdentifier: { clientIdentifier: 'mac' } } }),
            addresses: address ? [{ address }] : [],
            routes: gateway ? [{ destination: '', gateway, source: '', table: 'main' }] : [],
          }),
        ]
      })
      return [...made, ...addressed]
    },
  }
}

function ip(text: string, what: string): string {
  const bytes = parseIp(unbracketed(text))
  if (!bytes) throw new Error(`"${text}" is not ${what}`)
  return formatIp(bytes)
}

/** Splits at colons, except inside brackets, which enclose IPv6 addresses. */
function fields(value: string): string[] {
  const found = value.match(/\[[^\]]*\]|[^:[\]]+|:/g) ?? []
  const parts = ['']
  for (const piece of found) {
    if (piece === ':') parts.push('')
    else parts[parts.length - 1] += piece
  }
  return parts
}

const automatic = new Set(['dhcp', 'on', 'any', 'both'])
const none = new Set(['off', 'none', ''])

function readAddressing(value: string, spoken: { hostname?: string; servers: string[]; times: string[] }): Addressing | undefined {
  if (none.has(value)) return undefined
  if (automatic.has(value)) return { device: '', dhcp: true }
  const parts = fields(value)
  const [link = '', method = ''] = parts
  if (parts.length === 2 && automatic.has(method)) return { device: link, dhcp: true }
  if (parts.length === 1 && !parseIp(unbracketed(value))) throw new Error('expected "dhcp", "LINK:dhcp" or an address')
  const [client = '', , gateway = '', mask = '', hostname = '', device = '', autoconf = '', ...servers] = parts
  if (autoconf !== '' && !automatic.has(autoconf) && !none.has(autoconf))
    throw new Error(`"${autoconf}" is not an autoconfiguration method`)
  const address = client ? `${ip(client, 'an address')}/${prefixLength(mask, client)}` : undefined
  const found = {
    device,
    dhcp: client === '' && automatic.has(autoconf),
    ...(address && { address }),
    ...(gateway && { gateway: ip(gateway, 'a gateway') }),
  }
  const [first = '', second = '', time = ''] = servers
  const given = [first, second].filter((text) => text !== '').map((text) => ip(text, 'a name server'))
  spoken.servers.push(...given)
  if (time) spoken.times.push(ip(time, 'a time server'))
  if (hostname) spoken.hostname = hostname
  return found
}

/** Length of a netmask in dotted or numeric form. Without a mask: the full address length. */
export function prefixLength(mask: string, address: string): number {
  const size = isIPv6(address) ? 128 : 32
  if (mask === '') return size
  if (/^\d{1,3}$/.test(mask) && Number(mask) <= size) return Number(mask)
  const bytes = parseIp(mask)
  const length = bytes && bytes.length * 8 === size ? maskLength(bytes) : undefined
  if (length === undefined) throw new Error(`"${mask}" is not a netmask`)
  return length
}

const members = (list: string) => list.split(',').filter((name) => name !== '')

/** Bond options by their kernel driver names. */
const bondOptions: Readonly<Record<string, string>> = {
  mode: 'mode',
  xmit_hash_policy: 'xmitHashPolicy',
  lacp_rate: 'lacpRate',
  arp_validate: 'arpValidate',
  arp_all_targets: 'arpAllTargets',
  arp_ip_target: 'arpIpTargets',
  arp_interval: 'arpInterval',
  primary: 'primary',
  primary_reselect: 'primaryReselect',
  fail_over_mac: 'failOverMac',
  ad_select: 'adSelect',
  miimon: 'miimon',
  updelay: 'updelay',
  downdelay: 'downdelay',
  resend_igmp: 'resendIgmp',
  min_links: 'minLinks',
  lp_interval: 'lpInterval',
  packets_per_slave: 'packetsPerSlave',
  num_grat_arp: 'numPeerNotif',
  num_unsol_na: 'numPeerNotif',
  all_slaves_active: 'allSlavesActive',
  use_carrier: 'useCarrier',
}

function readBond(value: string): DeclaredLink {
  const [name = '', slaves = '', options = '', mtu = ''] = fields(value)
  if (!name) throw new Error('the bond has no name')
  const settings: Record<string, unknown> = {}
  for (const option of members(options)) {
    const at = option.indexOf('=')
    const key = bondOptions[option.slice(0, Math.max(0, at))]
    const text = option.slice(at + 1)
    if (at < 0 || key === undefined) throw new Error(`"${option}" is not a bond option`)
    const words: readonly string[] | undefined = bondValues[key as keyof typeof bondValues]
    if (words) {
      const word = words.includes(text) ? text : /^\d$/.test(text) ? words[Number(text)] : undefined
      if (word === undefined) throw new Error(`"${text}" is not one of ${words.join(', ')}`)
      settings[key] = word
    } else if (key === 'primary') settings[key] = text
    else if (key === 'arpIpTargets') settings[key] = text.split(';').map((target) => ip(target, 'an address'))
    else if (!/^\d{1,9}$/.test(text)) throw new Error(`"${text}" is not a number`)
    else settings[key] = key === 'useCarrier' ? text !== '0' : Number(text)
  }
  return declaredLink(name, {
    kind: 'bond',
    bond: bondOf(settings),
    members: members(slaves || 'eth0,eth1'),
    mtu: mtu === '' ? 0 : mtuOf(mtu),
  })
}

function mtuOf(text: string): number {
  if (!/^\d{2,5}$/.test(text)) throw new Error(`"${text}" is not an MTU`)
  return Number(text)
}

function readBridge(value: string): DeclaredLink {
  const [name = '', ports = ''] = fields(value)
  if (!name) throw new Error('the bridge has no name')
  return declaredLink(name, {
    kind: 'bridge',
    bridge: { stp: { enabled: false }, vlan: { filteringEnabled: false } },
    members: members(ports),
  })
}

/** `<link>.<id>:<parent>` or `vlan<id>:<parent>`. The link is always named `<parent>.<id>`. */
function readVlan(value: string, names: Map<string, string>): DeclaredLink {
  const [written = '', parent = ''] = fields(value)
  const id = Number(/(?:\.|^vlan)(\d{1,4})$/.exec(written)?.[1])
  if (!(id >= 1 && id <= 4095)) throw new Error('the VLAN needs an ID from 1 to 4095')
  if (!parent) throw new Error('the parent link of the VLAN is missing')
  const name = `${parent}.${id}`
  names.set(written, name)
  return declaredLink(name, { kind: 'vlan', vlan: { vlanID: id, vlanProtocol: '802.1q', parent } })
}
