/** Sets of addresses of both families: unions and differences of networks, returned as the minimal list of networks. */
import { formatIp } from './ip.ts'
import { parsePrefix } from './prefix.ts'

/** First and last address of a range. */
interface Range {
  readonly first: bigint
  readonly last: bigint
}

const families = [4, 16] as const
type Length = (typeof families)[number]

/** A set of addresses. Networks are strings such as `10.0.0.0/8`; a single address is a network of its own. */
export class PrefixSet {
  readonly #ranges: Record<Length, readonly Range[]> = { 4: [], 16: [] }

  /** The union of networks. Throws DecodeError for a malformed one. */
  static of(networks: readonly string[]): PrefixSet {
    const set = new PrefixSet()
    for (const length of families) {
      const own = networks.map(rangeOf).filter((range) => range.length === length)
      set.#ranges[length] = joined(own)
    }
    return set
  }

  /** The union with another set. */
  with(other: PrefixSet): PrefixSet {
    const set = new PrefixSet()
    for (const length of families) set.#ranges[length] = joined([...this.#ranges[length], ...other.#ranges[length]])
    return set
  }

  /** The difference to another set. */
  without(other: PrefixSet): PrefixSet {
    const set = new PrefixSet()
    for (const length of families) {
      let left = this.#ranges[length]
      for (const hole of other.#ranges[length]) left = left.flatMap((range) => cut(range, hole))
      set.#ranges[length] = left
    }
    return set
  }

  /** Whether both sets share an address. */
  overlaps(other: PrefixSet): boolean {
    return families.some((length) =>
      this.#ranges[length].some(({ first, last }) => other.#ranges[length].some((range) => range.first <= last && first <= range.last)),
    )
  }

  /** The minimal list of networks of the set, IPv4 first, sorted. */
  networks(): string[] {
    return families.flatMap((length) => this.#ranges[length].flatMap((range) => networksOf(range, length)))
  }
}

function rangeOf(text: string): Range & { length: Length } {
  const { bytes, bits } = parsePrefix(text)
  const low = BigInt(bytes.length * 8 - bits)
  const first = (bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n) >> low) << low
  return { first, last: first + (1n << low) - 1n, length: bytes.length === 4 ? 4 : 16 }
}

/** Sorted ranges, with adjacent ones merged. */
function joined(ranges: readonly Range[]): Range[] {
  const result: { first: bigint; last: bigint }[] = []
  for (const { first, last } of ranges.toSorted((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0))) {
    const before = result.at(-1)
    if (!before || first > before.last + 1n) result.push({ first, last })
    else if (last > before.last) before.last = last
  }
  return result
}

function cut(range: Range, hole: Range): Range[] {
  if (hole.last < range.first || hole.first > range.last) return [range]
  return [
    ...(hole.first > range.first ? [{ first: range.first, last: hole.first - 1n }] : []),
    ...(hole.last < range.last ? [{ first: hole.last + 1n, last: range.last }] : []),
  ]
}

function networksOf({ first, last }: Range, length: Length): string[] {
  const size = length * 8
  const networks: string[] = []
  for (let at = first; at <= last; ) {
    // The largest network that begins here and does not exceed the end.
    let low = 0
    while (low < size && (at >> BigInt(low)) % 2n === 0n && at + (1n << BigInt(low + 1)) - 1n <= last) low++
    networks.push(`${formatIp(bytesOf(at, length))}/${size - low}`)
    at += 1n << BigInt(low)
  }
  return networks
}

function bytesOf(value: bigint, length: Length): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let at = length - 1, rest = value; at >= 0; at--, rest >>= 8n) bytes[at] = Number(rest & 255n)
  return bytes
}
