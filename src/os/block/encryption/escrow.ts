/**
 * The recovery key that a machine makes for the recipients of its configuration. The same key is in every volume, so that an
 * administrator gives one: where volumes have different ones, as after one was added, all get a new one, which is in memory for
 * those that follow until the machine restarts.
 */

import { parseRecipient } from '../../../wire/age/keys.ts'
import type { Header } from '../../../wire/luks2/header.ts'
import { newRecoveryKey } from '../../../wire/luks2/recovery-key.ts'
import type { Machine } from '../../area.ts'
import type { KeyChanges } from './key-changes.ts'
import { type Escrow, escrowedSlots, escrowOf } from './recovery.ts'
import type { Unlocked } from './unlock.ts'

/** A volume whose key for recipients is brought in line. */
export interface Escrowed extends Pick<Unlocked, 'header' | 'volumeKey'> {
  readonly volume: string
  readonly path: string
  /** Public keys of age; none removes the key. */
  readonly recipients: readonly string[]
  /** What the other open volumes hold. */
  readonly others: readonly Escrow[]
}

/** The recovery key of one machine. */
export class MachineEscrow {
  #made: (Escrow & { readonly key: string }) | undefined

  constructor(
    readonly machine: Pick<Machine, 'log'>,
    readonly changes: KeyChanges,
  ) {}

  /** The escrow that volumes of these recipients have to hold; undefined while what each holds is right. */
  due(recipients: readonly string[]): string | undefined {
    return this.#made && isSame(recipients, this.#made.recipients) ? this.#made.escrow : undefined
  }

  /** The key that was made since the machine started. */
  get key(): string | undefined {
    return this.#made?.key
  }

  /** Brings the key of a volume in line. The one before works until the new one does. Resolves to the header then. */
  async sync(volume: Escrowed): Promise<Header> {
    const { header, path, recipients } = volume
    const present = escrowedSlots(header.metadata)
    const other = volume.others.find(({ recipients: whom }) => isSame(recipients, whom))
    const isRight = ({ escrow, recipients: whom }: Escrow) =>
      isSame(recipients, whom) && escrow === (this.due(recipients) ?? other?.escrow ?? escrow)
    const kept = recipients.length > 0 ? present.find(isRight) : undefined
    if (recipients.length > 0 && !kept) return this.#replace(volume)
    const superfluous = present.flatMap(({ slot }) => (slot === kept?.slot ? [] : slot))
    if (superfluous.length > 0) this.machine.log.info('recovery key for recipients removed', { volume: volume.volume, slots: superfluous })
    return this.changes.removeSlots(path, header, superfluous)
  }

  async #replace({ volume, path, header, volumeKey, recipients }: Escrowed): Promise<Header> {
    if (!this.#made || !isSame(recipients, this.#made.recipients)) {
      const key = newRecoveryKey()
      this.#made = { key, escrow: await escrowOf(key, recipients.map(parseRecipient)), recipients: [...recipients] }
    }
    const { key, ...escrow } = this.#made
    const changed = await this.changes.replaceRecovery(path, { header, volumeKey }, key, escrow)
    this.machine.log.info('recovery key for recipients made', { volume, recipients: recipients.length })
    return changed
  }
}

const isSame = (one: readonly string[], other: readonly string[] = []): boolean => Bun.deepEquals(one.toSorted(), other.toSorted())
