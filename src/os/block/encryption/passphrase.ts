/** The passphrases of the kinds of keys, byte for byte as the field derives them, so that its disks open here. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Token } from '../../../wire/luks2/metadata.ts'
import type { VolumeConfig } from '../resources/volume-config.ts'
import { isSealed, type KeyUse, type SealedKinds, sealNew, unsealed } from './sealed-kind.ts'

/** The encryption of a volume. */
export type Encryption = NonNullable<SpecOf<typeof VolumeConfig>['encryption']>
/** One of its keys. */
export type EncryptionKey = Encryption['keys'][number]

/** Control planes, and what a worker proves itself to them with. */
export interface Siblings {
  /** Each with the port of trustd. */
  readonly addresses: readonly string[]
  /** PEM of the authorities of the machine API. */
  readonly ca: string
  readonly token: string
}

/** What keys are derived from besides the configuration. */
export interface KeySources {
  /** UUID of the machine, from its firmware or from META. */
  readonly machineUUID?: string | undefined
  /** The salt on STATE, which locks keys to it. */
  readonly salt?: Uint8Array | undefined
  /** The control planes that seal keys for workers, once they are known. */
  readonly siblings?: Siblings | undefined
  /** Recovery keys that are known until the machine restarts. */
  readonly recovery?: readonly string[] | undefined
}

/** Type of the keys that are tried after those of the configuration once they are known. */
export const recoveryType = 'recovery'

/** The recovery key at a place in `KeySources`. Its slot is none of a header: the token there marks the slot that it is in. */
export const recoveryKeyAt = (place: number): EncryptionKey => ({ slot: -1 - place, type: recoveryType })

/** A key cannot be derived, or opens nothing. The message states the remedy. */
export class KeyError extends Error {
  override name = 'KeyError'
  /** Whether the cause may pass by itself within seconds, as with a server that the network does not reach yet. */
  readonly passing: boolean
  /** Whether the key in the slot cannot be restored as this machine is now. Where another key opened the volume, it is replaced. */
  readonly stale: boolean

  constructor(message: string, { passing = false, stale = false, cause }: { passing?: boolean; stale?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.passing = passing
    this.stale = stale
  }
}

/** A passphrase, and the token that restores it. */
export interface NewPassphrase {
  readonly passphrase: Uint8Array
  readonly token?: Token | undefined
}

/** The passphrase of a key that is added to a slot. Sealed kinds have another one each time. Throws KeyError. */
export async function newPassphrase(use: KeyUse, kinds: SealedKinds): Promise<NewPassphrase> {
  // What is missing is reported before anything is sealed.
  const lock = lockOf(use)
  if (!isSealed(use.key, kinds)) return { passphrase: joined(textOf(use), lock) }
  const { text, token } = await sealNew(use, kinds)
  return { passphrase: joined(text, lock), token }
}

/** The passphrase of a key in a slot, whose token restores it if it is of a sealed kind. Throws KeyError. */
export async function passphraseOf(use: KeyUse, token: Token | undefined, kinds: SealedKinds): Promise<Uint8Array> {
  const lock = lockOf(use)
  return joined(isSealed(use.key, kinds) ? await unsealed(use, token, kinds) : textOf(use), lock)
}

function lockOf({ key, sources }: KeyUse): Uint8Array {
  if (!key.lockToState) return new Uint8Array()
  if (!sources.salt) throw new KeyError('it is locked to STATE, whose salt is not there yet')
  return sources.salt
}

const joined = (text: string, lock: Uint8Array): Uint8Array => new Uint8Array(Buffer.concat([Buffer.from(text), lock]))

function textOf({ key, volume, sources }: KeyUse): string {
  switch (key.type) {
    case 'static':
      if (!key.staticPassphrase) throw new KeyError('its passphrase is empty')
      return key.staticPassphrase
    case 'nodeID':
      return `${distinctiveUUID(sources)}${volume}`
    case recoveryType: {
      const given = sources.recovery?.[-1 - key.slot]
      if (given === undefined) throw new KeyError('no recovery key was given')
      return given
    }
    default:
      throw new KeyError(`keys of kind "${key.type}" are not supported: use static or nodeID`)
  }
}

/** The UUID of the machine. Throws KeyError for one that other machines have too. */
export function distinctiveUUID({ machineUUID = '' }: KeySources): string {
  if (isDistinctive(machineUUID)) return machineUUID
  throw new KeyError(`the firmware has no usable UUID ("${machineUUID}"): write one to META with "talosctl meta write 0x0f"`)
}

/** False where one character makes up more than half of the UUID, as in those that firmware puts into every machine. */
function isDistinctive(uuid: string): boolean {
  const counts = new Map<string, number>()
  for (const character of uuid) counts.set(character, (counts.get(character) ?? 0) + 1)
  return uuid.length > 0 && Math.max(...counts.values()) <= uuid.length / 2
}
