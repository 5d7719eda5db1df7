/** The key that releases are signed with: Ed25519, made on first use, kept where only its owner reads it. */

import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { codeOf } from '../../src/wire/errno.ts'
import { present } from '../build/present.ts'

/** The file holds no key that can be used. */
export class KeyError extends Error {
  override name = 'KeyError'
}

/** Where the key is kept unless one is given. */
export const ownKeyPath = (): string => join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'ichor', 'image-key.pem')

/** Reads a key, PKCS #8 in PEM. */
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

/** The key at a path, or the user's own, which is generated when there is none; returns its path. */
export function imageKey(given?: string): { key: KeyObject; path: string; made: boolean } {
  const path = given ?? ownKeyPath()
  if (given || existsSync(path)) return { key: readKey(path), path, made: false }
  const { privateKey } = generateKeyPairSync('ed25519')
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600, flag: 'wx' })
  return { key: privateKey, path, made: true }
}

/** The public half, as base64 in a line. */
export function publicLine(key: KeyObject): string {
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  return `${Buffer.from(present(x, 'the public half of the key'), 'base64url').toString('base64')}\n`
}

/** A signature, as base64 in a line. */
export const signatureLine = (bytes: Uint8Array, key: KeyObject): string => `${sign(null, bytes, key).toString('base64')}\n`
