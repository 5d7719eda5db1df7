/** DHCP for IPv4 (RFC 2131), its options (RFC 2132), long ones (RFC 3396), routes (RFC 3442), search lists (RFC 3397). */
import { DecodeError } from '../decode-error.ts'
import { formatIp, formatMac, parseIp, parseMac } from '../ip.ts'
import { dhcp4Option } from './dhcp4-options.ts'

/** Message types (option 53). */
export const dhcp4Type = { discover: 1, offer: 2, request: 3, decline: 4, ack: 5, nak: 6, release: 7, inform: 8 } as const

/** The ports of servers and clients. */
export const dhcp4Ports = { server: 67, client: 68 } as const

/** A message. */
export interface Dhcp4Message {
  operation: 'request' | 'reply'
  /** Chosen by the client; the response repeats it. */
  transaction: number
  /** Seconds since the client started. */
  seconds: number
  /** Whether the response must be broadcast. */
  broadcast: boolean
  clientAddress: string
  yourAddress: string
  nextServer: string
  relay: string
  hardwareAddress: string
  options: Map<number, Uint8Array>
}

const unspecified = '0.0.0.0'
const fixedLength = 236

const cookie = Buffer.from([99, 130, 83, 99])

const pad = 0

const end = 255

/** Servers and relays may drop messages shorter than BOOTP's (RFC 1542 2.1). */
const shortest = 300

const mostOptionBytes = 4096

/** A message of a client that has no address yet. */
export function newRequest(transaction: number, hardwareAddress: string, options: Iterable<readonly [number, Uint8Array]>): Dhcp4Message {
  const none = { clientAddress: unspecified, yourAddress: unspecified, nextServer: unspecified, relay: unspecified }
  return { operation: 'request', transaction, seconds: 0, broadcast: false, ...none, hardwareAddress, options: new Map(options) }
}

/** Encodes a message. */
export function writeDhcp4(message: Dhcp4Message): Uint8Array {
  const fixed = Buffer.alloc(fixedLength)
  const mac = parseMac(message.hardwareAddress)
  if (!mac || mac.length > 16) throw new RangeError(`"${message.hardwareAddress}" is no hardware address`)
  fixed.set([message.operation === 'request' ? 1 : 2, 1, mac.length, 0])
  fixed.writeUInt32BE(message.transaction, 4)
  fixed.writeUInt16BE(Math.min(0xffff, message.seconds), 8)
  fixed.writeUInt16BE(message.broadcast ? 0x8000 : 0, 10)
  const addresses = [message.clientAddress, message.yourAddress, message.nextServer, message.relay]
  addresses.forEach((text, index) => {
    const address = parseIp(text)
    if (address?.length !== 4) throw new RangeError(`"${text}" is no IPv4 address`)
    fixed.set(address, 12 + index * 4)
  })
  fixed.set(mac, 28)
  const options: Uint8Array[] = []
  for (const [number, value] of message.options)
    for (let at = 0; at === 0 || at < value.length; at += 255) {
      const part = value.subarray(at, at + 255) // RFC 3396: longer values are split
      options.push(Buffer.from([number, part.length]), part)
    }
  const bytes = Buffer.concat([fixed, cookie, ...options, Buffer.from([end])])
  return bytes.length < shortest ? Buffer.concat([bytes, Buffer.alloc(shortest - bytes.length)]) : bytes
}

/** Decodes a message. Throws DecodeError. */
export function readDhcp4(bytes: Uint8Array): Dhcp4Message {
  if (bytes.length < fixedLength + 4) throw new DecodeError('DHCPv4 message', bytes.length, 'too short')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const operation = bytes[0]
  if (operation !== 1 && operation !== 2) throw new DecodeError('DHCPv4 message', 0, `operation ${operation}`)
  const macLength = view.getUint8(2)
  if (macLength > 16) throw new DecodeError('DHCPv4 message', 2, `a hardware address of ${macLength} bytes`)
  if (!cookie.equals(bytes.subarray(fixedLength, fixedLength + 4))) throw new DecodeError('DHCPv4 message', fixedLength, 'no magic cookie')
  const ip = (at: number) => formatIp(bytes.subarray(at, at + 4))
  return {
    operation: operation === 1 ? 'request' : 'reply',
    transaction: view.getUint32(4),
    seconds: view.getUint16(8),
    broadcast: (view.getUint16(10) & 0x8000) !== 0,
    clientAddress: ip(12),
    yourAddress: ip(16),
    nextServer: ip(20),
    relay: ip(24),
    hardwareAddress: formatMac(bytes.subarray(28, 28 + macLength)),
    options: readAllOptions(bytes),
  }
}

function readAllOptions(bytes: Uint8Array): Map<number, Uint8Array> {
  const options = new Map<number, Uint8Array>()
  readOptions(bytes.subarray(fixedLength + 4), fixedLength + 4, options)
  const overload = options.get(dhcp4Option.overload)?.[0] ?? 0 // RFC 2132 9.3: more options in the name fields
  options.delete(dhcp4Option.overload)
  if (overload & 1) readOptions(bytes.subarray(108, 236), 108, options)
  if (overload & 2) readOptions(bytes.subarray(44, 108), 44, options)
  return options
}

function readOptions(bytes: Uint8Array, base: number, into: Map<number, Uint8Array>): void {
  let total = 0
  for (let at = 0; at < bytes.length; ) {
    const number = bytes[at]
    if (number === undefined || number === end) return
    if (number === pad) {
      at++
      continue
    }
    const length = bytes[at + 1]
    if (length === undefined || at + 2 + length > bytes.length) throw new DecodeError('DHCPv4 option', base + at, `option ${number} is cut`)
    total += length
    if (total > mostOptionBytes) throw new DecodeError('DHCPv4 option', base + at, `more than ${mostOptionBytes} bytes`)
    const value = Uint8Array.prototype.slice.call(bytes, at + 2, at + 2 + length)
    const before = into.get(number)
    into.set(number, before ? Buffer.concat([before, value]) : value)
    at += 2 + length
  }
}
