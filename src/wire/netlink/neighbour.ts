/** Neighbours of rtnetlink(7): struct ndmsg and its attributes (linux/neighbour.h). */
import { DecodeError } from '../decode-error.ts'
import { formatIp, formatMac, parseIp, parseMac } from '../ip.ts'
import { AttributeReader, attribute } from './attributes.ts'

/** Message types of neighbours. */
export const neighbourMessage = { new: 28, del: 29, get: 30 } as const

/** The states of a neighbour entry. */
export const neighbourState = { incomplete: 1, reachable: 2, stale: 4, delay: 8, probe: 16, failed: 32, noArp: 64, permanent: 128 } as const

/** The hardware address for an address on a link or, for family 7, a forwarding entry of a bridge or VXLAN. */
export interface Neighbour {
  family: number
  link: number
  state: number
  flags: number
  type: number
  address?: string | undefined
  hardwareAddress?: string | undefined
}

const NDA = { dst: 1, lladdr: 2 } as const
const headerLength = 12

/** Decodes a neighbour message. */
export function readNeighbour(body: Uint8Array): Neighbour {
  if (body.length < headerLength) throw new DecodeError('neighbour', 0, `${body.length} bytes`)
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  const reader = new AttributeReader(body.subarray(headerLength), 'neighbour', headerLength)
  const address = reader.bytes(NDA.dst)
  const hardware = reader.bytes(NDA.lladdr)
  return {
    family: view.getUint8(0),
    link: view.getInt32(4, true),
    state: view.getUint16(8, true),
    flags: view.getUint8(10),
    type: view.getUint8(11),
    address: address && formatIp(address),
    hardwareAddress: hardware && formatMac(hardware),
  }
}

/** Encodes a neighbour message. */
export function writeNeighbour(neighbour: Partial<Neighbour> & { link: number }): Uint8Array {
  const address = neighbour.address === undefined ? undefined : parseIp(neighbour.address)
  if (neighbour.address !== undefined && !address) throw new RangeError(`"${neighbour.address}" is no IP address`)
  const hardware = neighbour.hardwareAddress === undefined ? undefined : parseMac(neighbour.hardwareAddress)
  if (neighbour.hardwareAddress !== undefined && !hardware) throw new RangeError(`"${neighbour.hardwareAddress}" is no hardware address`)
  const header = Buffer.alloc(headerLength)
  header.writeUInt8(neighbour.family ?? (address?.length === 16 ? 10 : 2), 0)
  header.writeInt32LE(neighbour.link, 4)
  header.writeUInt16LE(neighbour.state ?? neighbourState.permanent, 8)
  header.writeUInt8(neighbour.flags ?? 0, 10)
  header.writeUInt8(neighbour.type ?? 0, 11)
  return Buffer.concat([header, ...(address ? [attribute(NDA.dst, address)] : []), ...(hardware ? [attribute(NDA.lladdr, hardware)] : [])])
}
