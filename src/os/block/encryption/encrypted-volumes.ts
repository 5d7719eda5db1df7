/**
 * Encrypted volumes: they are mapped where they are open, and their key slots follow the configuration. Each change of a header is
 * a sequence of writes after any of which the volume can be opened with a key that is configured.
 */

import type { Deadline } from '../../../cosi/clock.ts'
import { SerialQueue } from '../../../timing/serial-queue.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Machine } from '../../area.ts'
import { probeDevice } from '../device.ts'
import { OtherContent, otherContent } from '../volumes/prepare.ts'
import { MachineEscrow } from './escrow.ts'
import { type Desired, inOrder, isPassing, type Recovery, VolumeHeaders } from './headers.ts'
import type { Synced } from './key-changes.ts'
import { closeMapping, openMapping } from './mapping.ts'
import { type EncryptionKey, recoveryType } from './passphrase.ts'
import type { SealedKinds } from './sealed-kind.ts'
import type { Unlocked } from './unlock.ts'

/**
 * Whether the key slots follow the configuration. `outstanding`: the configuration changes keys, and not all changes were made.
 * `unchecked`: they were not compared with it, as before STATE is read, or when only what keys are derived from changed and none
 * opens the header now.
 */
type KeyState = 'current' | 'outstanding' | 'unchecked'

/** An open volume. */
export interface Opened {
  /** The device of its content. */
  readonly device: string
  /** The UUID of its header. */
  readonly uuid: string
  /** The slot whose key opened it. */
  readonly slot: number
  /** Keys of the configuration that are not in the header, one line each. */
  readonly failedSyncs: readonly string[]
  readonly keyState: KeyState
}

interface Held extends Opened {
  readonly path: string
  readonly desired: Desired
  /** When keys that failed for a cause that may pass are tried again. */
  readonly due?: Deadline | undefined
  /** A key that is in the header. */
  readonly key: EncryptionKey
  readonly as: string
}

/** Milliseconds between attempts to bring keys in line: each derives the keys again. */
const syncInterval = 60_000

/** Milliseconds until the other volumes follow when one has a new recovery key. */
const followInterval = 2_000

/** The encrypted volumes of a machine. */
export class EncryptedVolumes {
  readonly #held = new Map<string, Held>()
  readonly #headers: VolumeHeaders
  readonly #escrow: MachineEscrow
  /** Headers are changed by one caller at a time: the controller of volumes and calls of the API. */
  readonly #callers = new SerialQueue()

  constructor(
    readonly machine: Pick<Machine, 'kernel' | 'log' | 'clock'>,
    readonly kinds: SealedKinds,
  ) {
    this.#headers = new VolumeHeaders(machine, kinds)
    this.#escrow = new MachineEscrow(machine, this.#headers.changes)
  }

  /** Volumes that are open. */
  get open(): string[] {
    return [...this.#held.keys()]
  }

  /** Recovery keys by volume. */
  get recoveries(): ReadonlyMap<string, Recovery> {
    return this.#headers.recoveries
  }

  /**
   * Opens a volume, and creates it on an empty device. Throws OtherContent for a device that holds something else, KeyError where no
   * key opens it. An open volume stays open when its keys change; what fails then is in `failedSyncs`.
   */
  provide(id: string, path: string, desired: Desired): Promise<Opened> {
    return this.#callers.run(async () => {
      const before = this.#held.get(id)
      if (before?.as === this.#asOf(desired) && !before.due?.over) return before
      try {
        const held = { ...(await this.#provide(id, path, desired, before)), path, desired, as: this.#asOf(desired) }
        this.#held.set(id, held)
        return held
      } catch (error) {
        if (!before) throw error
        const keyState: KeyState = changesKeys(before, desired) ? 'outstanding' : 'unchecked'
        const fields = { volume: id, error: messageOf(error) }
        if (keyState === 'outstanding') this.machine.log.error('encryption keys not changed', fields)
        else this.machine.log.warn('encryption keys not checked', fields)
        const held: Held = {
          ...before,
          desired,
          as: this.#asOf(desired),
          keyState,
          failedSyncs: [messageOf(error)],
          due: isPassing(error) ? this.#nextSync() : undefined,
        }
        this.#held.set(id, held)
        return held
      }
    })
  }

  /** Milliseconds until the keys of an open volume are tried again; undefined when none are due. */
  get dueIn(): number | undefined {
    const due = [...this.#held.values()].flatMap(({ due, as, desired }) =>
      as === this.#asOf(desired) ? (due?.left ?? []) : followInterval,
    )
    return due.length > 0 ? Math.min(...due) : undefined
  }

  /** Closes a volume. Returns false while it is in use. */
  close(id: string): boolean {
    if (this.#held.has(id) && !closeMapping(this.machine.kernel, id)) return false
    if (this.#held.delete(id)) this.machine.log.info('encrypted volume closed', { volume: id })
    return true
  }

  /** Puts a recovery key into every open volume, in place of the printed one before. Resolves to the volumes, each with what failed. */
  replaceRecovery(key: string, escrow: string): Promise<Map<string, string | undefined>> {
    return this.#callers.run(async () => {
      const outcome = new Map<string, string | undefined>()
      for (const [id, held] of this.#held) {
        try {
          const unlocked = await this.#headers.unlock(id, held.path, held.desired, held.key)
          try {
            this.#headers.note(id, held.path, await this.#headers.changes.replaceRecovery(held.path, unlocked, key, { escrow }), false)
          } finally {
            unlocked.volumeKey.fill(0)
          }
          outcome.set(id, undefined)
          this.machine.log.info('recovery key replaced', { volume: id })
        } catch (error) {
          outcome.set(id, messageOf(error))
          this.machine.log.error('recovery key not replaced', { volume: id, error: messageOf(error) })
        }
      }
      return outcome
    })
  }

  /** Volumes without another key that this recovery key opens. They open in the next round. */
  giveRecovery(key: string): Promise<string[]> {
    return this.#callers.run(() => this.#headers.giveRecovery(key))
  }

  /** What the keys of a volume follow: while it is the same, they are not compared again. */
  #asOf({ encryption, sources: { machineUUID, salt }, sync, recipients }: Desired): string {
    return JSON.stringify([
      encryption,
      machineUUID,
      salt !== undefined,
      sync,
      recipients,
      sync && recipients && this.#escrow.due(recipients),
    ])
  }

  #nextSync(): Deadline {
    return this.machine.clock.deadline(syncInterval)
  }

  async #provide(id: string, path: string, desired: Desired, before: Held | undefined): Promise<Omit<Held, 'as' | 'path' | 'desired'>> {
    const { kernel, log } = this.machine
    const headers = this.#headers
    const { found, size } = await probeDevice(kernel.block, path)
    if (found && found.name !== 'luks') throw new OtherContent(otherContent(id, 'an encrypted volume', path, found.name))
    const unlocked = found ? await headers.unlock(id, path, desired, before?.key) : await headers.create(id, path, desired)
    try {
      const { slot, volumeKey } = unlocked
      for (const reason of unlocked.failed) log.warn('encryption key does not open volume', { volume: id, reason })
      const { header, working, failed: failedSyncs, passing } = await this.#sync(id, path, desired, unlocked)
      headers.note(id, path, header, false)
      const key = this.#keyAfter(unlocked.key, working)
      const due = passing ? this.#nextSync() : undefined
      const keyState = keyStateOf(desired, failedSyncs)
      if (before) return { ...before, slot, key, failedSyncs, keyState, due }
      const device = openMapping(kernel, id, { path, size, header, volumeKey, options: desired.encryption.perfOptions ?? [] })
      log.info('encrypted volume opened', { volume: id, device, slot, key: unlocked.key.type })
      return { device, uuid: header.uuid, slot, key, failedSyncs, keyState, due }
    } finally {
      unlocked.volumeKey.fill(0)
    }
  }

  /** The key for later changes: once another one works they need the recovery key no more, else the one that may have replaced it. */
  #keyAfter(used: EncryptionKey, working: EncryptionKey | undefined): EncryptionKey {
    if (used.type !== recoveryType) return used
    if (!working && this.#escrow.key !== undefined) this.#headers.know(this.#escrow.key)
    return working ?? used
  }

  /** Brings the keys of an open header in line, then its recovery key. Neither keeps the volume from being used. */
  async #sync(volume: string, path: string, { encryption, sources, sync, recipients }: Desired, unlocked: Unlocked): Promise<Synced> {
    const { header } = unlocked
    if (!sync) return { header, working: undefined, failed: [], passing: false }
    const synced = await this.#headers.changes.sync({ volume, path, keys: inOrder(encryption), sources }, unlocked)
    // Without another key that works, the one for recipients may be the only one that does.
    if (!recipients || (recipients.length === 0 && !synced.working)) return synced
    const others = [...this.#held.keys()].flatMap((id) => (id === volume ? [] : (this.recoveries.get(id)?.keys ?? [])))
    try {
      const escrowed = { volume, path, header: synced.header, volumeKey: unlocked.volumeKey, recipients, others }
      return { ...synced, header: await this.#escrow.sync(escrowed) }
    } catch (error) {
      const reason = `recovery key for recipients: ${messageOf(error)}`
      this.machine.log.error('recovery key not in sync', { volume, error: reason })
      // What was written before it failed is read again.
      return { ...synced, header: await this.#headers.read(path), failed: [...synced.failed, reason] }
    }
  }
}

const keyStateOf = ({ sync }: Desired, failedSyncs: readonly string[]): KeyState => {
  if (!sync) return 'unchecked'
  return failedSyncs.length > 0 ? 'outstanding' : 'current'
}

/** Whether the configuration has other keys than those in the header, as far as it was compared. */
const changesKeys = ({ keyState, desired: { encryption } }: Held, desired: Desired): boolean =>
  keyState === 'outstanding' || !Bun.deepEquals(inOrder(encryption), inOrder(desired.encryption))
