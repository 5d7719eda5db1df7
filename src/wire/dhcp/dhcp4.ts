/** DHCP for IPv4 (RFC 2131), its options (RFC 2132), long ones (RFC 3396), routes (RFC 3442), search lists (RFC 3397). */
import { DecodeError } from '../decode-error.ts'
import { formatIp, formatMac, parseIp, parseMac } from '../ip.ts'

/** Message types (option 53). */
export const dhcp4Type = { discover: 1, offer: 2, request: 3, decline: 4, ack: 5, nak: 6, release: 7, inform: 8 } as const

/** Options by number. */
export const dhcp4Option = {
  subnetMask: 1,
  routers: 3,
  nameServers: 6,
  hostname: 12,
  domain: 15,
  mtu: 26,
  timeServers: 42,
  requestedAddress: 50,
  leaseTime: 51,
  overload: 52,
  messageType: 53,
  server: 54,
  parameters: 55,
  message: 56,
  maxSize: 57,
  renewalTime: 58,
  rebindingTime: 59,
  clientId: 61,
  search: 119,
  routes: 121,
} as const

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
  const macLength = bytes[2]!
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
    const number = bytes[at]!
    if (number === end) return
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

/** A route of option 121. */
export interface Dhcp4Route {
  /** With prefix length; '' is the default route. */
  destination: string
  /** '' for an on-link network. */
  gateway: string
}

/** The decoded options of a message; malformed ones are treated as absent. */
export class Dhcp4Options {
  constructor(private readonly options: ReadonlyMap<number, Uint8Array>) {}

  #number(option: number, size: 1 | 2 | 4): number | undefined {
    const bytes = this.options.get(option)
    if (bytes?.length !== size) return undefined
    return bytes.reduce((value, byte) => value * 256 + byte, 0)
  }

  #addresses(option: number): string[] {
    const bytes = this.options.get(option) ?? new Uint8Array()
    if (bytes.length % 4 !== 0) return []
    return Array.from({ length: bytes.length / 4 }, (_, index) => formatIp(bytes.subarray(index * 4, index * 4 + 4)))
  }

  #text(option: number): string {
    const bytes = this.options.get(option) ?? new Uint8Array()
    return Buffer.from(bytes).toString('latin1').replace(/\0.*$/s, '')
  }

  get type(): number | undefined {
    return this.#number(dhcp4Option.messageType, 1)
  }

  get server(): string | undefined {
    return this.#addresses(dhcp4Option.server)[0]
  }

  /** Prefix length of the netmask; undefined for a non-contiguous mask. */
  get prefixLength(): number | undefined {
    const mask = this.#number(dhcp4Option.subnetMask, 4)
    if (mask === undefined) return undefined
    const bits = mask.toString(2).padStart(32, '0')
    return /^1*0*$/.test(bits) ? bits.lastIndexOf('1') + 1 : undefined
  }

  /** Seconds; Infinity means forever. */
  get leaseTime(): number | undefined {
    return forever(this.#number(dhcp4Option.leaseTime, 4))
  }

  get renewalTime(): number | undefined {
    return forever(this.#number(dhcp4Option.renewalTime, 4))
  }

  get rebindingTime(): number | undefined {
    return forever(this.#number(dhcp4Option.rebindingTime, 4))
  }

  get routers(): string[] {
    return this.#addresses(dhcp4Option.routers)
  }

  get nameServers(): string[] {
    return this.#addresses(dhcp4Option.nameServers)
  }

  get timeServers(): string[] {
    return this.#addresses(dhcp4Option.timeServers)
  }

  /** 68 or more (RFC 2132 5.1). */
  get mtu(): number | undefined {
    const mtu = this.#number(dhcp4Option.mtu, 2)
    return mtu !== undefined && mtu >= 68 ? mtu : undefined
  }

  get hostname(): string {
    return nameOf(this.#text(dhcp4Option.hostname))
  }

  get domain(): string {
    return nameOf(this.#text(dhcp4Option.domain))
  }

  get message(): string {
    return this.#text(dhcp4Option.message).replaceAll(/[^\x20-\x7e]/g, '?')
  }

  get search(): string[] {
    return readSearchList(this.options.get(dhcp4Option.search) ?? new Uint8Array())
  }

  /** Undefined when the server sends no routes: then its routers apply (RFC 3442). */
  get routes(): Dhcp4Route[] | undefined {
    const bytes = this.options.get(dhcp4Option.routes)
    if (!bytes) return undefined
    const routes: Dhcp4Route[] = []
    for (let at = 0; at < bytes.length; ) {
      const bits = bytes[at]!
      const significant = Math.ceil(bits / 8)
      if (bits > 32 || at + 1 + significant + 4 > bytes.length) return undefined
      const destination = new Uint8Array(4)
      destination.set(bytes.subarray(at + 1, at + 1 + significant))
      const gateway = formatIp(bytes.subarray(at + 1 + significant, at + 5 + significant))
      routes.push({ destination: bits === 0 ? '' : `${formatIp(destination)}/${bits}`, gateway: gateway === unspecified ? '' : gateway })
      at += 5 + significant
    }
    return routes
  }
}

const forever = (seconds: number | undefined) => (seconds === 0xffffffff ? Number.POSITIVE_INFINITY : seconds)

/** A valid DNS name without its trailing dot; '' for any other string. */
export function nameOf(text: string): string {
  const name = text.endsWith('.') ? text.slice(0, -1) : text
  const labels = name.split('.')
  const valid = text.length <= 253 && /^[a-z0-9_][a-z0-9_.-]*$/i.test(name) && labels.every(({ length }) => length > 0 && length <= 63)
  return valid ? name : ''
}

/** Decodes consecutive DNS names, with or without compression (RFC 1035 4.1.4); a malformed name ends the list. */
export function readSearchList(bytes: Uint8Array): string[] {
  const names: string[] = []
  for (let at = 0; at < bytes.length && names.length < 64; ) {
    const labels: string[] = []
    let next = -1
    let place = at
    for (let jumps = 0; ; ) {
      const length = bytes[place]
      if (length === undefined) return names
      if (length === 0) {
        if (next < 0) next = place + 1
        break
      }
      if ((length & 0xc0) === 0xc0) {
        const target = ((length & 0x3f) << 8) | (bytes[place + 1] ?? 0)
        if (next < 0) next = place + 2
        if (target >= place || ++jumps > 16) return names // pointers only point back, so there is no loop
        place = target
        continue
      }
      if (length > 63 || place + 1 + length > bytes.length || labels.length > 126) return names
      labels.push(Buffer.from(bytes.subarray(place + 1, place + 1 + length)).toString('latin1'))
      place += 1 + length
    }
    const name = nameOf(labels.join('.'))
    if (name) names.push(name)
    at = next
  }
  return names
}

/** A number as an option value. */
export function optionNumber(value: number, size: 1 | 2 | 4): Uint8Array {
  const bytes = Buffer.alloc(size)
  bytes.writeUIntBE(value, 0, size)
  return bytes
}

/** Addresses as an option value. */
export const optionAddresses = (...addresses: string[]): Uint8Array =>
  Buffer.concat(addresses.map((text) => parseIp(text) ?? new Uint8Array()))
