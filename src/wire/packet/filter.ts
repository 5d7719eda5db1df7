/**
 * Filters for packets with Ethernet headers, as classic BPF instructions (linux/filter.h): parsed from the output of
 * `tcpdump -dd` and `-ddd`, or compiled from an expression. Expressions are the common part of pcap-filter(7): ip, ip6, arp,
 * tcp, udp, sctp, icmp, icmp6; [src|dst] host ADDRESS, net PREFIX, port NUMBER; not, and, or, parentheses. For IPv6 ports are
 * matched directly after the IPv6 header only, not after extension headers.
 */
import { parseIp } from '../ip.ts'
import { tryPrefix } from '../prefix.ts'

/** Operation, jump when true, jump when false, value. */
export type FilterInstruction = readonly [op: number, jt: number, jf: number, k: number]

/** A malformed filter; the message names what is expected. */
export class FilterError extends Error {
  override readonly name = 'FilterError'
}

const maxInstructions = 4096

/** Parses a filter in any of the forms. Throws FilterError. */
export function packetFilter(text: string): FilterInstruction[] {
  const trimmed = text.trim()
  if (trimmed === '') return []
  if (trimmed.includes('{')) return printed(trimmed)
  if (/^\d+(\s|$)/.test(trimmed)) return counted(trimmed)
  return compile(new Parser(trimmed).all())
}

/** Parses a sequence of `{ 0x28, 0, 0, 0x0000000c },`. */
function printed(text: string): FilterInstruction[] {
  const one = /\{\s*(0x[0-9a-f]+|\d+)\s*,\s*(0x[0-9a-f]+|\d+)\s*,\s*(0x[0-9a-f]+|\d+)\s*,\s*(0x[0-9a-f]+|\d+)\s*\}\s*(?:,\s*)?/giy
  const found: FilterInstruction[] = []
  while (one.lastIndex < text.length) {
    const at = one.lastIndex
    const match = one.exec(text)
    if (!match) throw new FilterError(`filter instruction at ${at}: want "{ op, jt, jf, k }," as "tcpdump -dd" prints them`)
    found.push(checked(match.slice(1, 5).map(Number)))
  }
  return limited(found)
}

/** Parses the number of instructions, then each in decimal. */
function counted(text: string): FilterInstruction[] {
  const [count = 0, ...rest] = text.split(/\s+/).map(Number)
  if (rest.length !== count * 4 || rest.some(Number.isNaN))
    throw new FilterError(
      `filter of ${count} instructions has ${rest.length} numbers behind it: want four for each, as "tcpdump -ddd" prints them`,
    )
  return limited(Array.from({ length: count }, (_, index) => checked(rest.slice(index * 4, index * 4 + 4))))
}

function checked([op = 0, jt = 0, jf = 0, k = 0]: readonly number[]): FilterInstruction {
  if (op > 0xffff || jt > 0xff || jf > 0xff || k > 0xffff_ffff)
    throw new FilterError(`filter instruction ${op} ${jt} ${jf} ${k} has a number that is too large`)
  return [op, jt, jf, k]
}

function limited(all: FilterInstruction[]): FilterInstruction[] {
  if (all.length > maxInstructions) throw new FilterError(`filter of ${all.length} instructions: at most ${maxInstructions}`)
  return all
}

type Test = { readonly loads: readonly (readonly [op: number, k: number])[]; readonly op: number; readonly k: number }
type Node = Test | { readonly all: readonly Node[] } | { readonly any: readonly Node[] } | { readonly not: Node }

const load32 = 0x20
const load16 = 0x28
const load8 = 0x30
const load16x = 0x48
const loadHeader = 0xb1
const and = 0x54
const equal = 0x15
const anySet = 0x45
const give = 0x06

const test = (op: number, offset: number, k: number): Test => ({ loads: [[op, offset]], op: equal, k })
const etherType = (type: number): Node => test(load16, 12, type)
const ip = etherType(0x0800)
const ip6 = etherType(0x86dd)
const arp = etherType(0x0806)
const inIp = (number: number): Node => ({ all: [ip, test(load8, 23, number)] })
const inIp6 = (number: number): Node => ({ all: [ip6, test(load8, 20, number)] })
const either = (number: number): Node => ({ any: [inIp(number), inIp6(number)] })
const withPorts = (build: (number: number) => Node): Node => ({ any: [6, 17, 132].map(build) })

const protocols: Record<string, Node> = {
  ip,
  ip6,
  arp,
  tcp: either(6),
  udp: either(17),
  sctp: either(132),
  icmp: inIp(1),
  icmp6: inIp6(58),
}

type Side = 'src' | 'dst'

function portIs(sides: readonly Side[], port: number): Node {
  const first: Node = { not: { loads: [[load16, 20]], op: anySet, k: 0x1fff } }
  const four = sides.map(
    (side): Node => ({
      loads: [
        [loadHeader, 14],
        [load16x, side === 'src' ? 14 : 16],
      ],
      op: equal,
      k: port,
    }),
  )
  const six = sides.map((side) => test(load16, side === 'src' ? 54 : 56, port))
  return {
    any: [{ all: [withPorts(inIp), first, { any: four }] }, { all: [withPorts(inIp6), { any: six }] }],
  }
}

function addressIn(sides: readonly Side[], address: Uint8Array, length: number): Node {
  const at = (offset: number): Node => ({
    all: Array.from({ length: Math.ceil(length / 32) }, (_, word): Node => {
      const bits = Math.min(32, length - word * 32)
      const mask = bits === 32 ? 0xffff_ffff : (0xffff_ffff << (32 - bits)) >>> 0
      const value = (Buffer.from(address).readUInt32BE(word * 4) & mask) >>> 0
      const loads = [[load32, offset + word * 4] as const, ...(bits === 32 ? [] : [[and, mask] as const])]
      return { loads, op: equal, k: value }
    }),
  })
  const within = (source: number, target: number): Node => ({ any: sides.map((side) => at(side === 'src' ? source : target)) })
  if (address.length === 16) return { all: [ip6, within(22, 38)] }
  return { any: [{ all: [ip, within(26, 30)] }, { all: [arp, within(28, 38)] }] }
}

class Parser {
  readonly #words: string[]
  #at = 0

  constructor(text: string) {
    this.#words = text.replace(/[()!]/g, ' $& ').replace(/&&/g, ' and ').replace(/\|\|/g, ' or ').trim().split(/\s+/)
    if (this.#words.length > 500) throw new FilterError(`filter of ${this.#words.length} words: at most 500`)
  }

  all(): Node {
    const node = this.#or(0)
    const rest = this.#words[this.#at]
    if (rest !== undefined) throw new FilterError(`filter: "${rest}" is not understood here: want "and", "or" or the end`)
    return node
  }

  #or(depth: number): Node {
    const first = this.#and(depth)
    const any = [first]
    while (this.#takes('or')) any.push(this.#and(depth))
    return any.length === 1 ? first : { any }
  }

  #and(depth: number): Node {
    const first = this.#one(depth)
    const all = [first]
    while (this.#takes('and')) all.push(this.#one(depth))
    return all.length === 1 ? first : { all }
  }

  #one(depth: number): Node {
    if (depth > 50) throw new FilterError('filter: more than 50 parentheses within each other')
    if (this.#takes('not') || this.#takes('!')) return { not: this.#one(depth + 1) }
    if (this.#takes('(')) {
      const node = this.#or(depth + 1)
      if (!this.#takes(')')) throw new FilterError('filter: ")" is missing')
      return node
    }
    const word = this.#words[this.#at]
    if (word === undefined) throw new FilterError('filter ends where an expression is wanted')
    const protocol = Object.hasOwn(protocols, word) ? protocols[word] : undefined
    if (!protocol) return this.#qualified()
    this.#at++
    const next = this.#words[this.#at] ?? ''
    return ['src', 'dst', 'host', 'net', 'port'].includes(next) ? { all: [protocol, this.#qualified()] } : protocol
  }

  #qualified(): Node {
    const sides: Side[] = this.#takes('src') ? ['src'] : this.#takes('dst') ? ['dst'] : ['src', 'dst']
    const kind = ['host', 'net', 'port'].find((name) => this.#takes(name)) ?? 'host'
    const value = this.#words[this.#at++] ?? ''
    if (kind === 'port') {
      const port = Number(value)
      if (!/^\d+$/.test(value) || port > 65535) throw new FilterError(`filter: "${value}" is no port`)
      return portIs(sides, port)
    }
    const prefix = kind === 'net' ? tryPrefix(value) : undefined
    const address = prefix?.bytes ?? (kind === 'host' ? parseIp(value) : undefined)
    if (!address)
      throw new FilterError(
        `filter: "${value}" is not understood: want ${Object.keys(protocols).join(', ')}, or [src|dst] host ADDRESS, net PREFIX or port NUMBER, joined by and, or, not; or the output of "tcpdump -dd"`,
      )
    return addressIn(sides, address, prefix?.bits ?? address.length * 8)
  }

  #takes(word: string): boolean {
    if (this.#words[this.#at] !== word) return false
    this.#at++
    return true
  }
}

interface Step {
  op: number
  k: number
  yes?: Label
  no?: Label
}

interface Label {
  at?: number
}

function compile(node: Node): FilterInstruction[] {
  const steps: Step[] = []
  const place = (label: Label) => {
    label.at = steps.length
  }
  const emit = (one: Node, yes: Label, no: Label): void => {
    if ('not' in one) {
      emit(one.not, no, yes)
      return
    }
    if ('loads' in one) {
      for (const [op, k] of one.loads) steps.push({ op, k })
      steps.push({ op: one.op, k: one.k, yes, no })
      return
    }
    const [parts, all] = 'all' in one ? [one.all, true] : [one.any, false]
    if (parts.length === 0) throw new FilterError('filter: a prefix of no bits matches everything: leave it out')
    for (const [index, part] of parts.entries()) {
      const next: Label = {}
      if (index === parts.length - 1) emit(part, yes, no)
      else if (all) emit(part, next, no)
      else emit(part, yes, next)
      place(next)
    }
  }
  const yes: Label = {}
  const no: Label = {}
  emit(node, yes, no)
  place(yes)
  steps.push({ op: give, k: 0x40000 })
  place(no)
  steps.push({ op: give, k: 0 })
  return limited(
    steps.map(({ op, k, yes: to, no: otherwise }, index): FilterInstruction => {
      const distance = (label: Label | undefined) => (label?.at === undefined ? 0 : label.at - index - 1)
      const [jt, jf] = [distance(to), distance(otherwise)]
      if (jt > 255 || jf > 255) throw new FilterError('filter is too long: a jump within it is further than 255 instructions')
      return [op, jt, jf, k]
    }),
  )
}
