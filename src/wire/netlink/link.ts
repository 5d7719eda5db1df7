/** Links of rtnetlink(7): struct ifinfomsg and its attributes. */
import { DecodeError } from '../decode-error.ts'
import { formatMac, parseMac } from '../ip.ts'
import { AttributeReader, attribute, nested, text, u32 } from './attributes.ts'
import { type LinkData, readLinkData, writeLinkData } from './link-kind.ts'

/** Message types of links. */
export const linkMessage = { new: 16, del: 17, get: 18, set: 19 } as const

/** Flags of a link (linux/if.h). */
const linkFlag = {
  up: 1,
  broadcast: 2,
  loopback: 8,
  pointToPoint: 0x10,
  running: 0x40,
  noArp: 0x80,
  promisc: 0x100,
  allMulti: 0x200,
  master: 0x400,
  slave: 0x800,
  multicast: 0x1000,
  lowerUp: 0x10000,
} as const

/** Counters of a link. */
export interface LinkCounters {
  rxPackets: number
  txPackets: number
  rxBytes: number
  txBytes: number
  rxErrors: number
  txErrors: number
  rxDropped: number
  txDropped: number
  multicast: number
  collisions: number
}

/** A link as reported by the kernel. */
export interface Link {
  index: number
  name: string
  /** ARPHRD_… */
  type: number
  flags: number
  mtu: number
  hardwareAddress: string
  broadcastAddress: string
  permanentAddress: string
  /** IF_OPER_…: 0 unknown, 2 down, 3 lower layer down, 5 dormant, 6 up. */
  operationalState: number
  carrier: boolean
  queueDiscipline: string
  txQueueLength: number
  alias: string
  alternativeNames: string[]
  /** Index of the link below (or of the peer of a veth), in namespace `linkNamespace` when that is set. */
  parent?: number | undefined
  linkNamespace?: number | undefined
  master?: number | undefined
  kind: string
  data: LinkData
  slaveKind: string
  counters?: LinkCounters | undefined
}

const IFLA = {
  address: 1,
  broadcast: 2,
  ifname: 3,
  mtu: 4,
  link: 5,
  qdisc: 6,
  master: 10,
  txqlen: 13,
  operstate: 16,
  linkinfo: 18,
  netNsPid: 19,
  ifalias: 20,
  stats64: 23,
  netNsFd: 28,
  carrier: 33,
  linkNetnsid: 37,
  propList: 52,
  altIfname: 53,
  permAddress: 54,
} as const
const IFLA_INFO = { kind: 1, data: 2, slaveKind: 4 } as const
const headerLength = 16

function readCounters(bytes: Uint8Array | undefined): LinkCounters | undefined {
  if (!bytes || bytes.length < 80) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const at = (index: number) => Number(view.getBigUint64(index * 8, true))
  return {
    rxPackets: at(0),
    txPackets: at(1),
    rxBytes: at(2),
    txBytes: at(3),
    rxErrors: at(4),
    txErrors: at(5),
    rxDropped: at(6),
    txDropped: at(7),
    multicast: at(8),
    collisions: at(9),
  }
}

/** Decodes a link message. */
export function readLink(body: Uint8Array): Link {
  if (body.length < headerLength) throw new DecodeError('link', 0, `${body.length} bytes`)
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  const reader = new AttributeReader(body.subarray(headerLength), 'link', headerLength)
  const mac = (type: number) => formatMac(reader.bytes(type) ?? new Uint8Array())
  const info = reader.nested(IFLA.linkinfo)
  const kind = info?.text(IFLA_INFO.kind) ?? ''
  const data = info?.nested(IFLA_INFO.data)
  return {
    index: view.getInt32(4, true),
    name: reader.text(IFLA.ifname) ?? '',
    type: view.getUint16(2, true),
    flags: view.getUint32(8, true),
    mtu: reader.u32(IFLA.mtu) ?? 0,
    hardwareAddress: mac(IFLA.address),
    broadcastAddress: mac(IFLA.broadcast),
    permanentAddress: mac(IFLA.permAddress),
    operationalState: reader.u8(IFLA.operstate) ?? 0,
    carrier: reader.u8(IFLA.carrier) === 1,
    queueDiscipline: reader.text(IFLA.qdisc) ?? '',
    txQueueLength: reader.u32(IFLA.txqlen) ?? 0,
    alias: reader.text(IFLA.ifalias) ?? '',
    alternativeNames: reader
      .list(IFLA.propList)
      .filter(({ type }) => type === IFLA.altIfname)
      .map(({ value }) => Buffer.from(value).toString().replace(/\0.*$/s, '')),
    parent: reader.u32(IFLA.link) || undefined,
    linkNamespace: reader.i32(IFLA.linkNetnsid),
    master: reader.u32(IFLA.master) || undefined,
    kind,
    data: data ? readLinkData(kind, data) : {},
    slaveKind: info?.text(IFLA_INFO.slaveKind) ?? '',
    counters: readCounters(reader.bytes(IFLA.stats64)),
  }
}

/** A change of a link; omitted fields stay as they are. */
export interface LinkChange {
  index?: number
  name?: string | undefined
  up?: boolean
  promisc?: boolean
  multicast?: boolean
  allMulticast?: boolean
  mtu?: number
  txQueueLength?: number
  hardwareAddress?: string
  alias?: string
  /** Index of its master, 0 for none. */
  master?: number
  /** Index of its parent link. */
  parent?: number
  /** Descriptor or pid of the network namespace to move it to. */
  namespaceFd?: number | undefined
  namespacePid?: number
  kind?: string
  data?: LinkData
  /** The peer of a veth pair. */
  peer?: LinkChange
}

const VETH_INFO_PEER = 1

/** Encodes a link message; also used to query one link by index or name. */
export function writeLink(change: LinkChange): Uint8Array {
  const header = Buffer.alloc(headerLength)
  let flags = 0
  let mask = 0
  const set = (bit: number, on: boolean | undefined) => {
    if (on === undefined) return
    mask |= bit
    if (on) flags |= bit
  }
  set(linkFlag.up, change.up)
  set(linkFlag.promisc, change.promisc)
  set(linkFlag.multicast, change.multicast)
  set(linkFlag.allMulti, change.allMulticast)
  header.writeInt32LE(change.index ?? 0, 4)
  header.writeUInt32LE(flags, 8)
  header.writeUInt32LE(mask, 12)
  return Buffer.concat([header, ...linkAttributes(change)])
}

function linkAttributes(change: LinkChange): Uint8Array[] {
  const attributes: Uint8Array[] = []
  const put = <T>(value: T | undefined, write: (value: T) => Uint8Array) => {
    if (value !== undefined) attributes.push(write(value))
  }
  put(change.name, (name) => text(IFLA.ifname, linkName(name)))
  put(change.mtu, (mtu) => u32(IFLA.mtu, mtu))
  put(change.txQueueLength, (length) => u32(IFLA.txqlen, length))
  put(change.hardwareAddress, (address) => {
    const bytes = parseMac(address)
    if (!bytes) throw new RangeError(`"${address}" is no hardware address`)
    return attribute(IFLA.address, bytes)
  })
  put(change.alias, (alias) => attribute(IFLA.ifalias, Buffer.from(alias)))
  put(change.master, (index) => u32(IFLA.master, index))
  put(change.parent, (index) => u32(IFLA.link, index))
  put(change.namespaceFd, (fd) => u32(IFLA.netNsFd, fd))
  put(change.namespacePid, (pid) => u32(IFLA.netNsPid, pid))
  const { kind, data = {}, peer } = change
  if (kind !== undefined) {
    const settings = writeLinkData(kind, data)
    if (peer) settings.push(attribute(VETH_INFO_PEER, writeLink(peer)))
    const info = [attribute(IFLA_INFO.kind, Buffer.from(kind))]
    if (settings.length > 0) info.push(nested(IFLA_INFO.data, settings))
    attributes.push(nested(IFLA.linkinfo, info))
  }
  return attributes
}

/** Refuses an invalid link name. */
export function linkName(name: string): string {
  if (!/^[^\s/:]{1,15}$/.test(name) || Buffer.byteLength(name) > 15 || name === '.' || name === '..')
    throw new RangeError(`"${name}" is no link name`)
  return name
}
