/** The key of the user who makes images: made on first use, kept where only its owner reads it. */

import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { readKey } from '../../src/programs/factory/image-key.ts'

/** Where the key is kept unless one is given. */
export const ownKeyPath = (): string => join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'ichor', 'image-key.pem')

/** The key at a path, or the user's own, which is generated when there is none; returns its path. */
export function imageKey(given?: string): { key: KeyObject; path: string; made: boolean } {
  const path = given ?? ownKeyPath()
  if (given || existsSync(path)) return { key: readKey(path), path, made: false }
  const { privateKey } = generateKeyPairSync('ed25519')
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600, flag: 'wx' })
  return { key: privateKey, path, made: true }
}
