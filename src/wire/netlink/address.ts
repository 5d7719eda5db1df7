/** Addresses of rtnetlink(7): struct ifaddrmsg and its attributes. */
import { DecodeError } from '../decode-error.ts'
import { formatIp, parseIp } from '../ip.ts'
import { tryPrefix } from '../prefix.ts'
import { AttributeReader, attribute, text, u32 } from './attributes.ts'

/** Message types of addresses. */
export const addressMessage = { new: 20, del: 21, get: 22 } as const

/** An address of a link. */
export interface Address {
  /** 2 or 10 (AF_INET, AF_INET6). */
  family: number
  /** With prefix length: 10.0.0.5/24. */
  address: string
  /** The local address, where it differs from `address` (point to point) or is given. */
  local?: string | undefined
  broadcast?: string | undefined
  anycast?: string | undefined
  multicast?: string | undefined
  label?: string | undefined
  link: number
  flags: number
  scope: number
  priority: number
  /** Seconds; Infinity means forever. */
  validLifetime: number
  preferredLifetime: number
}

const IFA = { address: 1, local: 2, label: 3, broadcast: 4, anycast: 5, cacheinfo: 6, multicast: 7, flags: 8, priority: 9 } as const
const headerLength = 8
const forever = 0xffffffff

/** Decodes an address message. */
export function readAddress(body: Uint8Array): Address {
  if (body.length < headerLength) throw new DecodeError('address', 0, `${body.length} bytes`)
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  const reader = new AttributeReader(body.subarray(headerLength), 'address', headerLength)
  const ip = (type: number) => {
    const bytes = reader.bytes(type)
    return bytes && formatIp(bytes)
  }
  const address = ip(IFA.address) ?? ip(IFA.local)
  if (address === undefined) throw new DecodeError('address', headerLength, 'it has none')
  const life = reader.bytes(IFA.cacheinfo)
  const seconds = (offset: number) => {
    const value = life && life.length >= 8 ? new DataView(life.buffer, life.byteOffset, 8).getUint32(offset, true) : forever
    return value === forever ? Number.POSITIVE_INFINITY : value
  }
  return {
    family: view.getUint8(0),
    address: `${address}/${view.getUint8(1)}`,
    local: ip(IFA.local),
    broadcast: ip(IFA.broadcast),
    anycast: ip(IFA.anycast),
    multicast: ip(IFA.multicast),
    label: reader.text(IFA.label),
    link: view.getUint32(4, true),
    flags: reader.u32(IFA.flags) ?? view.getUint8(2),
    scope: view.getUint8(3),
    priority: reader.u32(IFA.priority) ?? 0,
    preferredLifetime: seconds(0),
    validLifetime: seconds(4),
  }
}

/** The fields for adding or removing an address. */
export interface AddressChange {
  /** With prefix length. */
  address: string
  link: number
  /** The peer address of a point-to-point link. */
  peer?: string
  broadcast?: string
  label?: string
  flags?: number
  scope?: number
  priority?: number
  /** Seconds. Default: forever. */
  validLifetime?: number
  preferredLifetime?: number
}

/** Encodes an address message. */
export function writeAddress(change: AddressChange): Uint8Array {
  const prefix = tryPrefix(change.address)
  if (!prefix) throw new RangeError(`"${change.address}" is no address with prefix length`)
  const { flags = 0, scope = 0, label, priority, validLifetime, preferredLifetime } = change
  const bytes = (text: string) => {
    const parsed = parseIp(text)
    if (!parsed || parsed.length !== prefix.bytes.length)
      throw new RangeError(`"${text}" is no address of the same family as "${change.address}"`)
    return parsed
  }
  const header = Buffer.alloc(headerLength)
  header.writeUInt8(prefix.bytes.length === 4 ? 2 : 10, 0)
  header.writeUInt8(prefix.bits, 1)
  header.writeUInt8(flags & 255, 2)
  header.writeUInt8(scope, 3)
  header.writeUInt32LE(change.link, 4)
  const parts: Uint8Array[] = [
    header,
    attribute(IFA.local, prefix.bytes),
    attribute(IFA.address, change.peer ? bytes(change.peer) : prefix.bytes),
  ]
  if (change.broadcast) parts.push(attribute(IFA.broadcast, bytes(change.broadcast)))
  if (label) parts.push(text(IFA.label, label))
  if (flags > 255) parts.push(u32(IFA.flags, flags))
  if (priority) parts.push(u32(IFA.priority, priority))
  if (validLifetime !== undefined || preferredLifetime !== undefined) parts.push(lifetime(preferredLifetime, validLifetime))
  return Buffer.concat(parts)
}

function lifetime(preferred = Number.POSITIVE_INFINITY, valid = Number.POSITIVE_INFINITY): Uint8Array {
  const bytes = Buffer.alloc(16) // struct ifa_cacheinfo
  bytes.writeUInt32LE(Math.min(preferred, forever), 0)
  bytes.writeUInt32LE(Math.min(valid, forever), 4)
  return attribute(IFA.cacheinfo, bytes)
}
