/** Routes of rtnetlink(7): struct rtmsg and its attributes. */
import { DecodeError } from '../decode-error.ts'
import { formatIp, parseIp } from '../ip.ts'
import { tryPrefix } from '../prefix.ts'
import { AttributeReader, attribute, nested, u32 } from './attributes.ts'

/** Message types of routes. */
export const routeMessage = { new: 24, del: 25, get: 26 } as const

/** Tables, protocols, scopes and types of routes by name (linux/rtnetlink.h). */
const routeTable = { unspecified: 0, default: 253, main: 254, local: 255 } as const
const routeProtocol = { unspecified: 0, redirect: 1, kernel: 2, boot: 3, static: 4, ra: 9, dhcp: 16 } as const
const routeScope = { global: 0, site: 200, link: 253, host: 254, nowhere: 255 } as const
export const routeType = {
  unicast: 1,
  local: 2,
  broadcast: 3,
  anycast: 4,
  multicast: 5,
  blackhole: 6,
  unreachable: 7,
  prohibit: 8,
} as const

/** One of several next hops. */
export interface NextHop {
  link: number
  gateway?: string | undefined
  /** 1 to 256. */
  weight: number
  flags: number
}

/** A route. */
export interface Route {
  /** 2 or 10 (AF_INET, AF_INET6). */
  family: number
  /** With prefix length; undefined is the default route. */
  destination?: string | undefined
  /** Only for packets from this source. */
  source?: string | undefined
  preferredSource?: string | undefined
  gateway?: string | undefined
  link?: number | undefined
  table: number
  priority: number
  protocol: number
  scope: number
  type: number
  flags: number
  mtu?: number | undefined
  advmss?: number | undefined
  hops: NextHop[]
}

const RTA = { dst: 1, src: 2, oif: 4, gateway: 5, priority: 6, prefsrc: 7, metrics: 8, multipath: 9, table: 15, via: 18 } as const
const RTAX = { mtu: 2, advmss: 8 } as const
const headerLength = 12

function gatewayOf(reader: AttributeReader): string | undefined {
  const gateway = reader.bytes(RTA.gateway)
  if (gateway) return formatIp(gateway)
  const via = reader.bytes(RTA.via) // family, then the address
  return via && (via.length === 6 || via.length === 18) ? formatIp(via.subarray(2)) : undefined
}

function readHops(bytes: Uint8Array, offset: number): NextHop[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const hops: NextHop[] = []
  for (let at = 0; at < bytes.length; ) {
    const left = bytes.length - at
    const length = left >= 8 ? view.getUint16(at, true) : 0 // struct rtnexthop
    if (length < 8 || length > left) throw new DecodeError('route hop', offset + at, `length ${length} of ${left} bytes`)
    const reader = new AttributeReader(bytes.subarray(at + 8, at + length), 'route hop', offset + at + 8)
    hops.push({
      link: view.getInt32(at + 4, true),
      gateway: gatewayOf(reader),
      weight: view.getUint8(at + 3) + 1,
      flags: view.getUint8(at + 2),
    })
    at += (length + 3) & ~3
  }
  return hops
}

/** Decodes a route message. */
export function readRoute(body: Uint8Array): Route {
  if (body.length < headerLength) throw new DecodeError('route', 0, `${body.length} bytes`)
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  const reader = new AttributeReader(body.subarray(headerLength), 'route', headerLength)
  const prefix = (type: number, length: number) => {
    const bytes = reader.bytes(type)
    return bytes && `${formatIp(bytes)}/${length}`
  }
  const preferred = reader.bytes(RTA.prefsrc)
  const metrics = reader.nested(RTA.metrics)
  const multipath = reader.bytes(RTA.multipath)
  return {
    family: view.getUint8(0),
    destination: prefix(RTA.dst, view.getUint8(1)),
    source: prefix(RTA.src, view.getUint8(2)),
    preferredSource: preferred && formatIp(preferred),
    gateway: gatewayOf(reader),
    link: reader.u32(RTA.oif),
    table: reader.u32(RTA.table) ?? view.getUint8(4),
    priority: reader.u32(RTA.priority) ?? 0,
    protocol: view.getUint8(5),
    scope: view.getUint8(6),
    type: view.getUint8(7),
    flags: view.getUint32(8, true),
    mtu: metrics?.u32(RTAX.mtu),
    advmss: metrics?.u32(RTAX.advmss),
    hops: multipath ? readHops(multipath, headerLength) : [],
  }
}

/** The fields for adding or removing a route. */
export type RouteChange = Partial<Omit<Route, 'hops'>>

/** Encodes a route message; the default family is that of its addresses. */
export function writeRoute(change: RouteChange): Uint8Array {
  const destination = change.destination === undefined ? undefined : tryPrefix(change.destination)
  if (change.destination !== undefined && !destination) throw new RangeError(`"${change.destination}" is no prefix`)
  const source = change.source === undefined ? undefined : tryPrefix(change.source)
  if (change.source !== undefined && !source) throw new RangeError(`"${change.source}" is no prefix`)
  const ip = (text: string | undefined) => {
    const bytes = text === undefined ? undefined : parseIp(text)
    if (text !== undefined && !bytes) throw new RangeError(`"${text}" is no IP address`)
    return bytes
  }
  const gateway = ip(change.gateway)
  const preferred = ip(change.preferredSource)
  const sample = destination?.bytes ?? source?.bytes ?? gateway ?? preferred
  const family = change.family ?? (sample?.length === 16 ? 10 : 2)
  const { table = routeTable.main, priority, link, mtu, advmss } = change
  const scope = change.scope ?? (gateway || family === 10 || change.type === routeType.blackhole ? routeScope.global : routeScope.link)
  const header = Buffer.from([
    family,
    destination?.bits ?? 0,
    source?.bits ?? 0,
    0,
    table > 255 ? 0 : table,
    change.protocol ?? routeProtocol.static,
    scope,
    change.type ?? routeType.unicast,
    0,
    0,
    0,
    0,
  ])
  header.writeUInt32LE(change.flags ?? 0, 8)
  const parts: Uint8Array[] = [header]
  if (destination) parts.push(attribute(RTA.dst, destination.bytes))
  if (source) parts.push(attribute(RTA.src, source.bytes))
  if (link) parts.push(u32(RTA.oif, link))
  if (gateway)
    parts.push(
      gateway.length === 16 && family === 2
        ? attribute(RTA.via, Buffer.concat([Buffer.from([10, 0]), gateway]))
        : attribute(RTA.gateway, gateway),
    )
  if (priority) parts.push(u32(RTA.priority, priority))
  if (preferred) parts.push(attribute(RTA.prefsrc, preferred))
  const metrics = [...(mtu ? [u32(RTAX.mtu, mtu)] : []), ...(advmss ? [u32(RTAX.advmss, advmss)] : [])]
  if (metrics.length > 0) parts.push(nested(RTA.metrics, metrics))
  parts.push(u32(RTA.table, table))
  return Buffer.concat(parts)
}
