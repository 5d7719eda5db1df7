/** Finds the key of the configuration that opens a header. */
import { hash } from 'node:crypto'
import type { Clock } from '../../../cosi/clock.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Header, Read } from '../../../wire/luks2/header.ts'
import { openSlot } from '../../../wire/luks2/key-slots.ts'
import { type EncryptionKey, KeyError, type KeySources, passphraseOf } from './passphrase.ts'
import { fits, isSealed, type SealedKinds } from './sealed-kind.ts'

/** Milliseconds after which no further key is tried. */
const unlockLimit = 60_000

/** A header and the key that opens it. */
export interface Unlocked {
  readonly header: Header
  readonly volumeKey: Uint8Array
  readonly slot: number
  readonly key: EncryptionKey
  /** Keys that were tried before and did not open it, one line each. */
  readonly failed: readonly string[]
}

/** What is opened. */
export interface Locked {
  readonly volume: string
  readonly path: string
  readonly header: Header
  readonly read: Read
  readonly keys: readonly EncryptionKey[]
  readonly sources: KeySources
}

/** Opens headers, and remembers which passphrases did not open which: deriving keys again would have the same result. */
export class Unlocker {
  /** By volume: a header, and hashes of a slot and a passphrase. */
  readonly #wrong = new Map<string, { of: string; hashes: Set<string> }>()

  constructor(
    readonly kinds: SealedKinds,
    readonly clock: Pick<Clock, 'deadline'>,
  ) {}

  /** Opens a header with the first key that works. Throws KeyError with the reason of each if none does. */
  async unlock({ volume, path, header, read, keys, sources }: Locked): Promise<Unlocked> {
    const { kinds } = this
    const { keyslots, tokens } = header.metadata
    const wrong = this.#wrongOf(volume, header)
    const deadline = this.clock.deadline(unlockLimit)
    const reasons = new Map<EncryptionKey, string>()
    let passing = false
    for (const { key, slot } of attempts(keys, Object.keys(keyslots).map(Number))) {
      if (deadline.over) break
      // Another slot than its own can hold the key only with a token of its kind.
      if (slot !== key.slot && !fits(key, tokens[slot], kinds)) continue
      try {
        const passphrase = await passphraseOf({ key, slot, volume, sources }, tokens[slot], kinds)
        const as = isSealed(key, kinds) ? undefined : hash('sha256', Buffer.concat([Buffer.from(`${slot} `), passphrase]), 'hex')
        const volumeKey = as && wrong.has(as) ? undefined : await openSlot(header.metadata, slot, passphrase, read)
        if (volumeKey)
          return { header, volumeKey, slot, key, failed: [...reasons].flatMap(([each, reason]) => (each === key ? [] : reason)) }
        if (as) wrong.add(as)
        if (!reasons.has(key)) reasons.set(key, reasonOf(key, 'it does not open the volume'))
      } catch (error) {
        passing ||= error instanceof KeyError && error.passing
        if (!reasons.has(key)) reasons.set(key, reasonOf(key, error))
      }
    }
    throw new KeyError(`no key opens encrypted volume "${volume}" on ${path}: ${[...reasons.values()].join('; ')}`, { passing })
  }

  #wrongOf(volume: string, { uuid, sequence }: Header): Set<string> {
    const of = `${uuid} ${sequence}`
    const before = this.#wrong.get(volume)
    if (before?.of === of) return before.hashes
    const hashes = new Set<string>()
    this.#wrong.set(volume, { of, hashes })
    return hashes
  }
}

/** Why a key does not work. */
export const reasonOf = ({ slot, type }: EncryptionKey, error: unknown): string => `slot ${slot} (${type}): ${messageOf(error)}`

/** Each key on its own slot first; then on the others, where an interrupted change may have left it. */
function attempts(keys: readonly EncryptionKey[], slots: readonly number[]): { key: EncryptionKey; slot: number }[] {
  return [
    ...keys.map((key) => ({ key, slot: key.slot })),
    ...keys.flatMap((key) => slots.filter((slot) => slot !== key.slot).map((slot) => ({ key, slot }))),
  ]
}
