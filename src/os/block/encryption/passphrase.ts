/** The passphrases of the kinds of keys, byte for byte as the field derives them, so that its disks open here. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { VolumeConfig } from '../resources/volume-config.ts'

/** The encryption of a volume. */
export type Encryption = NonNullable<SpecOf<typeof VolumeConfig>['encryption']>
/** One of its keys. */
export type EncryptionKey = Encryption['keys'][number]

/** What keys are derived from besides the configuration. */
export interface KeySources {
  /** UUID of the machine, from its firmware or from META. */
  readonly machineUUID?: string | undefined
  /** The salt on STATE, which locks keys to it. */
  readonly salt?: Uint8Array | undefined
}

/** A key cannot be derived, or opens nothing. The message states the remedy. */
export class KeyError extends Error {
  override name = 'KeyError'
}

/** The passphrase of a key of a volume. Throws KeyError. */
export function passphraseOf(key: EncryptionKey, volume: string, sources: KeySources): Uint8Array {
  const own = Buffer.from(textOf(key, volume, sources))
  if (!key.lockToState) return new Uint8Array(own)
  if (!sources.salt) throw new KeyError('it is locked to STATE, whose salt is not there yet')
  return new Uint8Array(Buffer.concat([own, sources.salt]))
}

function textOf(key: EncryptionKey, volume: string, { machineUUID = '' }: KeySources): string {
  switch (key.type) {
    case 'static':
      if (!key.staticPassphrase) throw new KeyError('its passphrase is empty')
      return key.staticPassphrase
    case 'nodeID':
      if (!isDistinctive(machineUUID))
        throw new KeyError(`the firmware has no usable UUID ("${machineUUID}"): write one to META with "talosctl meta write 0x0f"`)
      return `${machineUUID}${volume}`
    default:
      throw new KeyError(`keys of kind "${key.type}" are not supported: use static or nodeID`)
  }
}

/** False where one character makes up more than half of the UUID, as in those that firmware puts into every machine. */
function isDistinctive(uuid: string): boolean {
  const counts = new Map<string, number>()
  for (const character of uuid) counts.set(character, (counts.get(character) ?? 0) + 1)
  return uuid.length > 0 && Math.max(...counts.values()) <= uuid.length / 2
}
