/** The settings of each kind of link (IFLA_INFO_DATA in linux/if_link.h). */
import { formatIp, formatMac, parseIp, parseMac } from '../ip.ts'
import { type AttributeReader, attribute, be16, nested, u8, u16, u32 } from './attributes.ts'

type Shape = 'u8' | 'u16' | 'u32' | 'be16' | 'ip' | 'mac' | 'ips' | 'vlanFlags'

/** Settings of a link by name. */
export type LinkData = Record<string, number | string | string[]>

type Table = Record<string, [number: number, shape: Shape]>

const bond: Table = {
  mode: [1, 'u8'],
  activeSlave: [2, 'u32'],
  miimon: [3, 'u32'],
  updelay: [4, 'u32'],
  downdelay: [5, 'u32'],
  useCarrier: [6, 'u8'],
  arpInterval: [7, 'u32'],
  arpIpTargets: [8, 'ips'],
  arpValidate: [9, 'u32'],
  arpAllTargets: [10, 'u32'],
  primary: [11, 'u32'],
  primaryReselect: [12, 'u8'],
  failOverMac: [13, 'u8'],
  xmitHashPolicy: [14, 'u8'],
  resendIgmp: [15, 'u32'],
  numPeerNotif: [16, 'u8'],
  allSlavesActive: [17, 'u8'],
  minLinks: [18, 'u32'],
  lpInterval: [19, 'u32'],
  packetsPerSlave: [20, 'u32'],
  lacpRate: [21, 'u8'],
  adSelect: [22, 'u8'],
  adActorSysPrio: [24, 'u16'],
  adUserPortKey: [25, 'u16'],
  adActorSystem: [26, 'mac'],
  tlbLogicalLb: [27, 'u8'],
  peerNotifyDelay: [28, 'u32'],
  adLacpActive: [29, 'u8'],
  missedMax: [30, 'u8'],
  nsIp6Targets: [31, 'ips'],
}

const bridge: Table = {
  forwardDelay: [1, 'u32'],
  helloTime: [2, 'u32'],
  maxAge: [3, 'u32'],
  ageingTime: [4, 'u32'],
  stpState: [5, 'u32'],
  priority: [6, 'u16'],
  vlanFiltering: [7, 'u8'],
  vlanProtocol: [8, 'be16'],
  groupForwardMask: [9, 'u16'],
  multicastSnooping: [23, 'u8'],
  vlanDefaultPvid: [39, 'u16'],
}

const vxlan: Table = {
  id: [1, 'u32'],
  group: [2, 'ip'],
  link: [3, 'u32'],
  local: [4, 'ip'],
  ttl: [5, 'u8'],
  tos: [6, 'u8'],
  learning: [7, 'u8'],
  ageing: [8, 'u32'],
  limit: [9, 'u32'],
  proxy: [11, 'u8'],
  port: [15, 'be16'],
  group6: [16, 'ip'],
  local6: [17, 'ip'],
  udpCsum: [18, 'u8'],
}

const tables: Record<string, Table> = {
  bond,
  bridge,
  vxlan,
  vlan: { id: [1, 'u16'], flags: [2, 'vlanFlags'], protocol: [5, 'be16'] },
  vrf: { table: [1, 'u32'] },
  macvlan: { mode: [1, 'u32'] },
  ipvlan: { mode: [1, 'u16'] },
  dummy: {},
  veth: {},
  wireguard: {}, // its settings are set over generic netlink
}

function readOne(reader: AttributeReader, number: number, shape: Shape): number | string | string[] | undefined {
  if (shape === 'vlanFlags') return reader.u32(number)
  if (shape === 'ips') return reader.has(number) ? reader.list(number).map(({ value }) => formatIp(value)) : undefined
  if (shape !== 'ip' && shape !== 'mac') return reader[shape](number)
  const bytes = reader.bytes(number)
  return bytes && (shape === 'ip' ? formatIp(bytes) : formatMac(bytes))
}

/** Decodes IFLA_INFO_DATA of a kind; unknown kinds and settings are skipped. */
export function readLinkData(kind: string, reader: AttributeReader): LinkData {
  const data: LinkData = {}
  const table = Object.hasOwn(tables, kind) ? tables[kind] : undefined
  for (const [name, [number, shape]] of Object.entries(table ?? {})) {
    const value = readOne(reader, number, shape)
    if (value !== undefined) data[name] = value
  }
  return data
}

function addressBytes(name: string, value: unknown): Uint8Array {
  const bytes = typeof value === 'string' ? parseIp(value) : undefined
  if (!bytes) throw new RangeError(`link setting "${name}": "${String(value)}" is no IP address`)
  return bytes
}

function writeOne(name: string, number: number, shape: Shape, value: number | string | string[]): Uint8Array {
  if (shape === 'ip') return attribute(number, addressBytes(name, value))
  if (shape === 'ips') {
    const list = Array.isArray(value) ? value : [String(value)]
    return nested(
      number,
      list.map((address, index) => attribute(index, addressBytes(name, address))),
    )
  }
  if (shape === 'mac') {
    const bytes = parseMac(String(value))
    if (!bytes) throw new RangeError(`link setting "${name}": "${String(value)}" is no hardware address`)
    return attribute(number, bytes)
  }
  const amount = Number(value)
  if (!Number.isInteger(amount) || amount < 0) throw new RangeError(`link setting "${name}": "${String(value)}" is no number`)
  if (shape === 'vlanFlags') {
    const bytes = Buffer.alloc(8) // struct ifla_vlan_flags: flags, mask
    bytes.writeUInt32LE(amount, 0)
    bytes.writeUInt32LE(0xffffffff, 4)
    return attribute(number, bytes)
  }
  return { u8, u16, u32, be16 }[shape](number, amount)
}

/** Encodes the settings of a kind; unknown settings are refused. */
export function writeLinkData(kind: string, data: LinkData): Uint8Array[] {
  const table = Object.hasOwn(tables, kind) ? tables[kind] : undefined
  return Object.entries(data).map(([name, value]) => {
    const known = table && Object.hasOwn(table, name) ? table[name] : undefined
    if (!known) throw new RangeError(`link kind "${kind}" has no setting "${name}"`)
    return writeOne(name, known[0], known[1], value)
  })
}
