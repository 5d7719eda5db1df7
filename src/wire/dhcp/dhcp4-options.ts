import { formatIp, parseIp } from '../ip.ts'

const unspecified = '0.0.0.0'

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
    for (let at = 0, bits = bytes[at]; bits !== undefined; bits = bytes[at]) {
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
