/** DHCP for IPv6 (RFC 8415), with its name servers (RFC 3646) and time servers (RFC 4075, RFC 5908). */
import { DecodeError } from '../decode-error.ts'
import { formatIp, parseIp } from '../ip.ts'
import { readSearchList } from './dhcp4-options.ts'

/** Message types. */
export const dhcp6Type = {
  solicit: 1,
  advertise: 2,
  request: 3,
  confirm: 4,
  renew: 5,
  rebind: 6,
  reply: 7,
  release: 8,
  decline: 9,
  reconfigure: 10,
  informationRequest: 11,
} as const

/** Options by number. */
export const dhcp6Option = {
  clientId: 1,
  serverId: 2,
  iaNa: 3,
  iaAddress: 5,
  request: 6,
  preference: 7,
  elapsed: 8,
  status: 13,
  rapidCommit: 14,
  nameServers: 23,
  search: 24,
  sntpServers: 31,
  fqdn: 39,
  ntpServer: 56,
} as const

/** Status codes of a server; 0 is success. */
export const dhcp6Status = { success: 0, unspecFail: 1, noAddresses: 2, noBinding: 3, notOnLink: 4, useMulticast: 5 } as const

/** The ports of servers and clients; the multicast address of servers and relays. */
export const dhcp6Ports = { server: 547, client: 546 } as const
export const allServers = 'ff02::1:2'

/** One option. */
export interface Dhcp6OptionValue {
  number: number
  value: Uint8Array
}

/** A message between client and server. */
export interface Dhcp6Message {
  type: number
  /** 24 bits, chosen by the client. */
  transaction: number
  options: Dhcp6OptionValue[]
}

const mostOptions = 256

/** Encodes an option. */
export function writeOption(number: number, value: Uint8Array): Uint8Array {
  const head = Buffer.alloc(4)
  head.writeUInt16BE(number, 0)
  head.writeUInt16BE(value.length, 2)
  return Buffer.concat([head, value])
}

/** Encodes a message. */
export function writeDhcp6({ type, transaction, options }: Dhcp6Message): Uint8Array {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(((type << 24) | (transaction & 0xffffff)) >>> 0)
  return Buffer.concat([head, ...options.map(({ number, value }) => writeOption(number, value))])
}

/** Decodes a message. Throws DecodeError. */
export function readDhcp6(bytes: Uint8Array): Dhcp6Message {
  if (bytes.length < 4) throw new DecodeError('DHCPv6 message', bytes.length, 'too short')
  const head = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0)
  return { type: head >>> 24, transaction: head & 0xffffff, options: readDhcp6Options(bytes.subarray(4), 4) }
}

/** Decodes consecutive options. Throws DecodeError. */
function readDhcp6Options(bytes: Uint8Array, base = 0): Dhcp6OptionValue[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const options: Dhcp6OptionValue[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = at + 4 <= bytes.length ? view.getUint16(at + 2) : Number.POSITIVE_INFINITY
    if (at + 4 + length > bytes.length) throw new DecodeError('DHCPv6 option', base + at, `length ${length} of ${bytes.length - at} bytes`)
    if (options.length === mostOptions) throw new DecodeError('DHCPv6 option', base + at, 'too many')
    options.push({ number: view.getUint16(at), value: Uint8Array.prototype.slice.call(bytes, at + 4, at + 4 + length) })
    at += 4 + length
  }
  return options
}

/** An address of an association; lifetimes in seconds (Infinity means forever). */
export interface Dhcp6Address {
  address: string
  preferred: number
  valid: number
}

/** An association of addresses (IA_NA) as sent by a server. */
export interface Dhcp6Association {
  id: number
  /** Seconds; 0 leaves the choice to the client. */
  t1: number
  t2: number
  addresses: Dhcp6Address[]
  status: { code: number; message: string }
}

const forever = (seconds: number) => (seconds === 0xffffffff ? Number.POSITIVE_INFINITY : seconds)
const success = { code: 0, message: '' }

/** Encodes an association with the requested addresses. */
export function writeAssociation(id: number, addresses: readonly string[]): Uint8Array {
  const head = Buffer.alloc(12)
  head.writeUInt32BE(id >>> 0)
  const list = addresses.map((text) => {
    const bytes = parseIp(text)
    if (bytes?.length !== 16) throw new RangeError(`"${text}" is no IPv6 address`)
    return writeOption(dhcp6Option.iaAddress, Buffer.concat([bytes, Buffer.alloc(8)]))
  })
  return Buffer.concat([head, ...list])
}

function readStatus(bytes: Uint8Array | undefined): Dhcp6Association['status'] {
  const [high, low] = bytes ?? []
  if (!bytes || high === undefined || low === undefined) return success
  const message = Buffer.from(bytes.subarray(2))
    .toString()
    .replaceAll(/[^\x20-\x7e]/g, '?')
  return { code: (high << 8) | low, message }
}

function readAssociation(bytes: Uint8Array): Dhcp6Association {
  if (bytes.length < 12) throw new DecodeError('DHCPv6 association', bytes.length, 'too short')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const options = readDhcp6Options(bytes.subarray(12), 12)
  const addresses = options.flatMap(({ number, value }) => {
    if (number !== dhcp6Option.iaAddress) return []
    if (value.length < 24) throw new DecodeError('DHCPv6 address', value.length, 'too short')
    const life = new DataView(value.buffer, value.byteOffset, value.byteLength)
    const [preferred, valid] = [forever(life.getUint32(16)), forever(life.getUint32(20))]
    const status = readStatus(readDhcp6Options(value.subarray(24)).find((option) => option.number === dhcp6Option.status)?.value)
    // RFC 8415 21.6: the address is discarded when its preferred lifetime exceeds its valid lifetime
    return status.code !== 0 || preferred > valid ? [] : [{ address: formatIp(value.subarray(0, 16)), preferred, valid }]
  })
  const status = readStatus(options.find(({ number }) => number === dhcp6Option.status)?.value)
  return { id: view.getUint32(0), t1: forever(view.getUint32(4)), t2: forever(view.getUint32(8)), addresses, status }
}

/** The decoded options of a message; malformed ones are treated as absent. */
export class Dhcp6Meaning {
  constructor(private readonly message: Dhcp6Message) {}

  #bytes(number: number): Uint8Array | undefined {
    return this.message.options.find((option) => option.number === number)?.value
  }

  #addresses(number: number): string[] {
    const bytes = this.#bytes(number) ?? new Uint8Array()
    if (bytes.length % 16 !== 0) return []
    return Array.from({ length: bytes.length / 16 }, (_, index) => formatIp(bytes.subarray(index * 16, index * 16 + 16)))
  }

  get clientId(): Uint8Array | undefined {
    return this.#bytes(dhcp6Option.clientId)
  }

  get serverId(): Uint8Array | undefined {
    return this.#bytes(dhcp6Option.serverId)
  }

  get preference(): number {
    return this.#bytes(dhcp6Option.preference)?.[0] ?? 0
  }

  get rapidCommit(): boolean {
    return this.#bytes(dhcp6Option.rapidCommit) !== undefined
  }

  get status(): Dhcp6Association['status'] {
    return readStatus(this.#bytes(dhcp6Option.status))
  }

  /** The association with this id. */
  association(id: number): Dhcp6Association | undefined {
    for (const { number, value } of this.message.options) {
      if (number !== dhcp6Option.iaNa) continue
      try {
        const found = readAssociation(value)
        if (found.id === id >>> 0) return found
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error
      }
    }
    return undefined
  }

  get nameServers(): string[] {
    return this.#addresses(dhcp6Option.nameServers)
  }

  get search(): string[] {
    return readSearchList(this.#bytes(dhcp6Option.search) ?? new Uint8Array())
  }

  get timeServers(): string[] {
    const simple = this.#addresses(dhcp6Option.sntpServers)
    try {
      const servers = readDhcp6Options(this.#bytes(dhcp6Option.ntpServer) ?? new Uint8Array()).flatMap(({ number, value }) => {
        if (number === 1 && value.length === 16) return [formatIp(value)]
        return number === 3 ? readSearchList(value).slice(0, 1) : []
      })
      return [...new Set([...servers, ...simple])]
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error
      return simple
    }
  }
}
