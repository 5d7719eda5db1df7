/** The key that releases are signed with: Ed25519, PKCS #8 in PEM. */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { codeOf } from '../../wire/errno.ts'

/** The file holds no key that can be used. */
export class KeyError extends Error {
  override name = 'KeyError'
}

/** Reads a key, PKCS #8 in PEM. Throws KeyError. */
export function readKey(path: string): KeyObject {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new KeyError(`key "${path}": ${codeOf(error)}`)
  }
  let key: KeyObject | undefined
  try {
    key = createPrivateKey(text)
  } catch {}
  if (key?.asymmetricKeyType !== 'ed25519')
    throw new KeyError(`key "${path}": no private Ed25519 key in PEM (openssl genpkey -algorithm ed25519 makes one)`)
  return key
}

/** The public half, as base64 in a line. */
export function publicLine(key: KeyObject): string {
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  return `${Buffer.from(x, 'base64url').toString('base64')}\n`
}

/** A signature, as base64 in a line. */
export const signatureLine = (bytes: Uint8Array, key: KeyObject): string => `${sign(null, bytes, key).toString('base64')}\n`
