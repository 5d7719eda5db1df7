import net from 'node:net'
import { UsageError } from '../../failure.ts'

/** An IPv4 network. */
export interface Cidr {
  /** The network's own address as a number. */
  base: number
  bits: number
}

/** Reads a network such as `10.5.0.0/24`; a set host part is refused, for it is usually a slip. */
export function parseCidr(text: string, flag = '--cidr'): Cidr {
  const [address = '', length = '', rest] = text.split('/')
  const bits = /^\d{1,2}$/.test(length) ? Number(length) : Number.NaN
  if (rest !== undefined || net.isIP(address) === 0 || Number.isNaN(bits))
    throw new UsageError(`${flag} "${text}": write a network such as 10.5.0.0/24`)
  if (net.isIPv6(address)) throw new UsageError(`${flag} "${text}": container clusters use an IPv4 network, such as 10.5.0.0/24`)
  if (bits < 8 || bits > 29) throw new UsageError(`${flag} "${text}": the prefix length must lie between 8 and 29`)
  const value = toNumber(address)
  const base = network(value, bits)
  if (base !== value) throw new UsageError(`${flag} "${text}": the address is not the network's first: write ${toText(base)}/${bits}`)
  return { base, bits }
}

/** The n-th address of a network: 0 is the network itself, 1 by custom the gateway. */
export function addressOf(cidr: Cidr, n: number): string {
  if (n < 0 || n >= sizeOf(cidr)) throw new RangeError(`address ${n} of ${formatCidr(cidr)}: outside`)
  return toText(cidr.base + n)
}

/** How many addresses a network has, its first and last included. */
export function sizeOf(cidr: Cidr): number {
  return 2 ** (32 - cidr.bits)
}

/** Whether two networks share an address. */
export function overlap(a: Cidr, b: Cidr): boolean {
  const bits = Math.min(a.bits, b.bits)
  return network(a.base, bits) === network(b.base, bits)
}

/** Whether an address lies in a network. */
export function contains(cidr: Cidr, address: string): boolean {
  return net.isIPv4(address) && network(toNumber(address), cidr.bits) === cidr.base
}

/** The network's text form. */
export function formatCidr(cidr: Cidr): string {
  return `${toText(cidr.base)}/${cidr.bits}`
}

/** The network that an interface with this address belongs to. */
export function networkOf(address: string, bits: number): Cidr {
  return { base: network(toNumber(address), bits), bits }
}

function network(value: number, bits: number): number {
  const size = 2 ** (32 - bits)
  return Math.floor(value / size) * size
}

function toNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}

function toText(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.')
}
