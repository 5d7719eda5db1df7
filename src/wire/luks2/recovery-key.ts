/**
 * Recovery keys: 160 random bits in the letters of Crockford's base 32, and 20 bits of their SHA-256, so that a mistyped key is
 * noticed. Nine groups of four: `0123-4567-…`. The text with its dashes is the passphrase.
 */
import { hash, randomBytes } from 'node:crypto'
import { DecodeError } from '../decode-error.ts'

const letters = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const keyBytes = 20
const keyLetters = (keyBytes * 8) / 5
const checkLetters = 4
/** Longest text that is looked at: people add spaces. */
const longest = 200

/** A new key. */
export const newRecoveryKey = (): string => formatted(encoded(randomBytes(keyBytes)))

/** The key as it was printed, from what a person typed: in any case, with or without dashes and spaces. Throws DecodeError. */
export function parseRecoveryKey(text: string): string {
  if (text.length > longest) throw new DecodeError('recovery key', longest, 'it is too long')
  const typed = text.toUpperCase().replaceAll(/[\s-]/g, '').replaceAll('O', '0').replaceAll(/[IL]/g, '1')
  const strange = [...typed].findIndex((letter) => !letters.includes(letter))
  if (strange >= 0) throw new DecodeError('recovery key', strange, 'a letter that no key has')
  if (typed.length !== keyLetters + checkLetters)
    throw new DecodeError('recovery key', 0, `it has ${typed.length} letters, expected ${keyLetters + checkLetters}`)
  const key = formatted(typed.slice(0, keyLetters))
  if (key.replaceAll('-', '') !== typed) throw new DecodeError('recovery key', keyLetters, 'it is mistyped: its last group does not match')
  return key
}

function formatted(key: string): string {
  const check = encoded(hash('sha256', key, 'buffer')).slice(0, checkLetters)
  return (`${key}${check}`.match(/.{4}/g) ?? []).join('-')
}

/** Five bits a letter; bits that fill no letter are left out. */
function encoded(bytes: Uint8Array): string {
  let [text, value, bits] = ['', 0, 0]
  for (const byte of bytes) {
    value = (value << 8) | byte
    for (bits += 8; bits >= 5; bits -= 5) text += letters[(value >>> (bits - 5)) & 31]
    value &= (1 << bits) - 1
  }
  return text
}
