/** Makes other inputs of known ones: bits flipped, numbers made extreme, pieces doubled, taken out, or put in from others. */

/** A source of numbers from 0 up to, not including, a limit; the same seed gives the same ones. */
export function numbers(seed: number): (limit: number) => number {
  let state = seed >>> 0 || 1
  return (limit) => {
    // xorshift
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % Math.max(1, limit)
  }
}

const extreme = [0, 1, 0x7f, 0x80, 0xff, 0x20, 0x2c, 0x0a, 0x7b, 0x7d]
const largest = 20_000

/** One more input, made of one of these. */
export function mutated(corpus: readonly Uint8Array[], pick: (limit: number) => number): Uint8Array {
  let bytes = Buffer.from(corpus[pick(corpus.length)] ?? Buffer.alloc(0))
  for (let times = 1 + pick(4); times > 0; times--) {
    const at = pick(bytes.length + 1)
    const size = pick(Math.min(64, bytes.length - at) + 1)
    const how = pick(7)
    if (how === 0 && at < bytes.length) bytes[at] = bytes[at]! ^ (1 << pick(8))
    else if (how === 1 && at < bytes.length) bytes[at] = extreme[pick(extreme.length)]!
    else if (how === 2) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + size)])
    else if (how === 3) bytes = Buffer.concat([bytes.subarray(0, at + size), bytes.subarray(at)])
    else if (how === 4) bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from([pick(256)]), bytes.subarray(at)])
    else if (how === 5 && at + 4 <= bytes.length) bytes.writeUInt32BE((pick(2) ? 0xffff_ffff : pick(70_000)) >>> 0, at)
    else {
      const other = corpus[pick(corpus.length)] ?? Buffer.alloc(0)
      const from = pick(other.length + 1)
      bytes = Buffer.concat([bytes.subarray(0, at), other.subarray(from, from + 1 + pick(200)), bytes.subarray(at)])
    }
  }
  return bytes.subarray(0, largest)
}
