/**
 * Kinds of keys that are random: something outside of the configuration seals them, and the sealed form is a token in the header,
 * whose number is that of the slot. The passphrase of the slot is the key in base64.
 */
import { randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { DecodeError } from '../../../wire/decode-error.ts'
import type { Token } from '../../../wire/luks2/metadata.ts'
import { type EncryptionKey, KeyError, type KeySources, recoveryType } from './passphrase.ts'
import { marksRecovery } from './recovery.ts'

/** Bytes of a sealed key. */
const keyLength = 32

/** A key, and where it is used. */
export interface KeyUse {
  readonly key: EncryptionKey
  /** The slot it is read from or added to. */
  readonly slot: number
  readonly volume: string
  readonly sources: KeySources
}

/** A kind of key. Both methods have a time limit of their own, and throw KeyError with one line that states the remedy. */
export interface SealedKind {
  /** Type of its tokens. */
  readonly token: string
  /** Seals a new key of 32 bytes. Resolves to what its token holds. */
  seal(secret: Uint8Array, use: KeyUse): Promise<Readonly<Record<string, unknown>>>
  /** Restores a key from what a token holds, which comes from the disk and may be anything. */
  unseal(data: Readonly<Record<string, unknown>>, use: KeyUse): Promise<Uint8Array>
  /** Whether a token was sealed as the configuration requests. Without this method it always is. Throws KeyError. */
  isCurrent?(data: Readonly<Record<string, unknown>>, key: EncryptionKey): boolean
}

/** Kinds by the type of key in the configuration. */
export type SealedKinds = Readonly<Partial<Record<string, SealedKind>>>

/** Whether keys of this type are sealed. */
export const isSealed = ({ type }: EncryptionKey, kinds: SealedKinds): boolean => kinds[type] !== undefined

/** Whether a slot with this token can hold such a key. */
export const fits = ({ type }: EncryptionKey, token: Token | undefined, kinds: SealedKinds): boolean => {
  if (type === recoveryType || marksRecovery(token)) return type === recoveryType && marksRecovery(token)
  const kind = kinds[type]
  return !kind || token?.type === kind.token
}

/** Whether a token was sealed as the configuration requests now. One that cannot be read was not. */
export function isCurrent(key: EncryptionKey, token: Token | undefined, kinds: SealedKinds): boolean {
  const kind = kinds[key.type]
  if (!kind?.isCurrent) return true
  const { success, output } = v.safeParse(userData, token)
  try {
    return success && kind.isCurrent(output.UserData, key)
  } catch (error) {
    if (error instanceof KeyError || error instanceof DecodeError) return false
    throw error
  }
}

const userData = v.object({ UserData: v.record(v.string(), v.unknown()) })

function kindOf({ key }: KeyUse, kinds: SealedKinds): SealedKind {
  const kind = kinds[key.type]
  if (!kind) throw new KeyError(`keys of kind "${key.type}" are not supported`)
  return kind
}

/** Makes and seals a key. */
export async function sealNew(use: KeyUse, kinds: SealedKinds): Promise<{ text: string; token: Token }> {
  const kind = kindOf(use, kinds)
  const secret = new Uint8Array(randomBytes(keyLength))
  const UserData = await kind.seal(secret, use)
  return { text: Buffer.from(secret).toString('base64'), token: { UserData, type: kind.token, keyslots: [] } }
}

/** Restores the key of a token. */
export async function unsealed(use: KeyUse, token: Token | undefined, kinds: SealedKinds): Promise<string> {
  const kind = kindOf(use, kinds)
  if (!token) throw new KeyError('the header has no token for it')
  if (token.type !== kind.token) throw new KeyError(`the header has a token of type "${token.type}" for it, not "${kind.token}"`)
  const { success, output } = v.safeParse(userData, token)
  if (!success) throw new KeyError('its token in the header holds no data')
  return Buffer.from(await kind.unseal(output.UserData, use)).toString('base64')
}
