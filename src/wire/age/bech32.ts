/** Bech32 (BIP 173) without its limit of 90 characters, as age writes its keys. */
import { DecodeError } from '../decode-error.ts'

const alphabet = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const generator = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]
const checksumLength = 6

/** Lower case text of some bytes, with the prefix of their kind. */
export function encodeBech32(prefix: string, bytes: Uint8Array): string {
  const words = regroup(bytes, 8, 5, true)
  const sum = polymod([...expanded(prefix), ...words, ...new Array<number>(checksumLength).fill(0)]) ^ 1
  const checksum = Array.from({ length: checksumLength }, (_, i) => (sum >>> (5 * (checksumLength - 1 - i))) & 31)
  return `${prefix}1${[...words, ...checksum].map((word) => alphabet.charAt(word)).join('')}`
}

/** The bytes of such a text. Throws DecodeError for another prefix, a wrong checksum, and mixed case. */
export function decodeBech32(prefix: string, text: string): Uint8Array {
  const fail = (detail: string) => new DecodeError(`bech32 "${prefix}"`, 0, detail)
  if (text !== text.toLowerCase() && text !== text.toUpperCase()) throw fail('upper and lower case are mixed')
  const lower = text.toLowerCase()
  const split = lower.lastIndexOf('1')
  if (split < 1 || lower.slice(0, split) !== prefix) throw fail('it does not begin so')
  const words = [...lower.slice(split + 1)].map((character) => alphabet.indexOf(character))
  if (words.length < checksumLength || words.includes(-1)) throw fail('a character that does not occur in it, or too few of them')
  if (polymod([...expanded(prefix), ...words]) !== 1) throw fail('its checksum is wrong')
  return Uint8Array.from(regroup(words.slice(0, -checksumLength), 5, 8, false))
}

const expanded = (prefix: string): number[] => {
  const codes = [...Buffer.from(prefix)]
  return [...codes.map((code) => code >> 5), 0, ...codes.map((code) => code & 31)]
}

function polymod(words: readonly number[]): number {
  let sum = 1
  for (const word of words) {
    const top = sum >>> 25
    sum = ((sum & 0x1ffffff) << 5) ^ word
    for (const [i, value] of generator.entries()) if ((top >>> i) & 1) sum ^= value
  }
  return sum >>> 0
}

/** Groups of `from` bits as groups of `to` bits; leftover bits are padded, or must be zero and fewer than a group. */
function regroup(groups: Iterable<number>, from: number, to: number, pad: boolean): number[] {
  const out: number[] = []
  let held = 0
  let bits = 0
  for (const group of groups) {
    held = ((held << from) | group) & 0xfff
    bits += from
    while (bits >= to) {
      bits -= to
      out.push((held >>> bits) & ((1 << to) - 1))
    }
  }
  const left = held & ((1 << bits) - 1)
  if (pad && bits > 0) out.push((left << (to - bits)) & ((1 << to) - 1))
  if (!pad && (bits >= from || left !== 0)) throw new DecodeError('bech32', 0, 'its padding is not zero')
  return out
}
