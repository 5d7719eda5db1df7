/**
 * The Huffman code of HPACK. RFC 7541, appendix B.
 * The code is canonical: codes of equal length are consecutive in symbol order, so the lengths define it completely.
 */
import { ConnectionError } from './error.ts'

/** Code length in bits of each byte, and of the end-of-string symbol. */
// biome-ignore format: a table of numbers
const lengths = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
]

const endOfString = 256

/** The transition for a nibble: the next state in the low bits, then the byte it completes. */
const emits = 0x1_0000
const fails = 0x2_0000

interface Machine {
  /** By state and nibble: `next | emits | byte << 8`, or `fails`. */
  readonly steps: Int32Array
  /** States in which a string may end: fewer than eight bits of padding, all ones. */
  readonly ends: Uint8Array
}

let built: Machine | undefined

/** Decodes a Huffman-coded string as Latin-1. Throws ConnectionError when it is invalid. */
export function decodeHuffman(bytes: Uint8Array): string {
  built ??= build()
  const { steps, ends } = built
  // The shortest code has five bits.
  const out = Buffer.allocUnsafe(Math.ceil((bytes.length * 8) / 5))
  let size = 0
  let state = 0
  let seen = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    let step = steps[(state << 4) | (byte >> 4)] ?? fails
    if (step & emits) out[size++] = (step >> 8) & 0xff
    seen |= step
    step = steps[((step & 0xff) << 4) | (byte & 0xf)] ?? fails
    if (step & emits) out[size++] = (step >> 8) & 0xff
    seen |= step
    state = step & 0xff
  }
  if (seen & fails || !ends[state]) throw new ConnectionError('COMPRESSION_ERROR', 'header text is no Huffman code')
  return out.toString('latin1', 0, size)
}

/** An inner node of the code tree, which is a state, and what a zero and a one lead to: a node, a symbol, or nothing yet. */
interface Branch {
  readonly state: number
  readonly sides: [Branch | number | undefined, Branch | number | undefined]
}

/** Builds the code tree, walked four bits at a time. Its inner nodes are the states; there are 256 of them. */
function build(): Machine {
  const root: Branch = { state: 0, sides: [undefined, undefined] }
  const states = [root]
  let code = 0
  let before = 0
  for (const [symbol, length] of [...lengths.entries()].sort(([a, one], [b, other]) => one - other || a - b)) {
    code = (code << (length - before)) >>> 0
    before = length
    let node = root
    for (let bit = length - 1; bit > 0; bit--) {
      const side = ((code >>> bit) & 1) as 0 | 1
      let next = node.sides[side]
      if (typeof next !== 'object') {
        next = { state: states.length, sides: [undefined, undefined] }
        node.sides[side] = next
        states.push(next)
      }
      node = next
    }
    node.sides[(code & 1) as 0 | 1] = symbol
    code++
  }
  const steps = new Int32Array(states.length * 16)
  for (const node of states) for (let nibble = 0; nibble < 16; nibble++) steps[node.state * 16 + nibble] = walk(root, node, nibble)
  const ends = new Uint8Array(states.length)
  let padding: Branch | number | undefined = root
  for (let depth = 0; depth < 8 && typeof padding === 'object'; depth++) {
    ends[padding.state] = 1
    padding = padding.sides[1]
  }
  return { steps, ends }
}

function walk(root: Branch, from: Branch, nibble: number): number {
  let node = from
  let emitted = 0
  for (let bit = 3; bit >= 0; bit--) {
    const next = node.sides[((nibble >> bit) & 1) as 0 | 1]
    if (typeof next === 'object') node = next
    else {
      if (next === undefined || next === endOfString) return fails
      emitted = emits | (next << 8)
      node = root
    }
  }
  return emitted | node.state
}
