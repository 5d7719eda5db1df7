/** Changes of the keys of a header. Each is a sequence of writes after any of which the volume opens with a key that is configured. */
import { messageOf } from '../../../wire/error-message.ts'
import type { WriteStep } from '../../../wire/gpt/table.ts'
import type { Cost } from '../../../wire/luks2/derive.ts'
import { changed, type Header, writeHeader } from '../../../wire/luks2/header.ts'
import { addSlot, type Change, freeSlot, openSlot, removeSlot } from '../../../wire/luks2/key-slots.ts'
import type { Machine } from '../../area.ts'
import { known, withDevice, writeSteps } from '../device.ts'
import { measureCost } from './cost.ts'
import { capacityOf } from './parameters.ts'
import { type EncryptionKey, KeyError, type KeySources, newPassphrase, passphraseOf } from './passphrase.ts'
import { type Escrow, marksRecovery, recoverySlots, recoveryTokenOf } from './recovery.ts'
import { fits, isCurrent, type KeyUse, type SealedKinds } from './sealed-kind.ts'
import type { Unlocked } from './unlock.ts'

/** What keys of a volume should be. */
export interface DesiredKeys {
  readonly volume: string
  readonly path: string
  /** In the order of their slots. */
  readonly keys: readonly EncryptionKey[]
  readonly sources: KeySources
}

/** The outcome of bringing keys in line. */
export interface Synced {
  readonly header: Header
  /** The first configured key that is in the header. */
  readonly working: EncryptionKey | undefined
  /** What failed, one line a slot. */
  readonly failed: string[]
  /** Whether a cause may pass by itself. */
  readonly passing: boolean
}

/** Changes headers on devices. */
export class KeyChanges {
  #cost: Cost | undefined

  constructor(
    readonly machine: Pick<Machine, 'kernel' | 'log' | 'clock'>,
    readonly kinds: SealedKinds,
  ) {}

  /** Writes the damaged copy of a header again. */
  async mended(path: string, header: Header): Promise<Header> {
    if (!header.damaged) return header
    this.machine.log.warn('encryption header copy damaged or outdated, restoring it', { device: path, copy: header.damaged })
    const whole = changed(header, header.metadata)
    await this.write(path, writeHeader(whole))
    return whole
  }

  /**
   * Brings the key slots in line with the configuration. No slot is removed unless a configured key works, and never the one of
   * the recovery key.
   */
  async sync({ volume, path, keys, sources }: DesiredKeys, unlocked: Unlocked): Promise<Synced> {
    const failed: string[] = []
    let passing = false
    const working: EncryptionKey[] = []
    let { header } = unlocked
    const attempt = async (slot: number, run: () => Promise<void>) => {
      try {
        await run()
      } catch (error) {
        const reason = messageOf(error)
        passing ||= error instanceof KeyError && error.passing
        failed.push(`slot ${slot}: ${reason}`)
        this.machine.log.error('encryption key not in sync', { volume, slot, error: reason })
      }
    }
    for (const key of keys)
      await attempt(key.slot, async () => {
        const use = { key, slot: key.slot, volume, sources }
        const token = header.metadata.tokens[key.slot]
        const opensAlready = key.slot === unlocked.slot && isSame(key, unlocked.key) && isCurrent(key, token, this.kinds)
        if (!opensAlready && !(await this.#opens(path, header, use))) {
          const made = await newPassphrase(use, this.kinds)
          const change = await addSlot(header, unlocked.volumeKey, { ...made, slot: key.slot, cost: await this.cost() })
          header = await this.#apply(path, change)
          this.machine.log.info('encryption key added', { volume, slot: key.slot })
        }
        working.push(key)
      })
    const { keyslots, tokens } = header.metadata
    const superfluous = Object.keys(keyslots).filter(
      (slot) => !marksRecovery(tokens[slot]) && !keys.some((key) => String(key.slot) === slot),
    )
    for (const slot of working.length > 0 ? superfluous.map(Number) : [])
      await attempt(slot, async () => {
        header = await this.#apply(path, removeSlot(header, slot))
        this.machine.log.info('encryption key removed', { volume, slot })
      })
    return { header, working: working[0], failed, passing }
  }

  /** Puts a recovery key in place of those before, which work until it does: of printed keys, or of those for recipients. */
  async replaceRecovery(
    path: string,
    { header: before, volumeKey }: Pick<Unlocked, 'header' | 'volumeKey'>,
    key: string,
    escrow: Escrow,
  ): Promise<Header> {
    const passphrase = new Uint8Array(Buffer.from(key))
    const slot = freeSlot(before.metadata)
    const token = recoveryTokenOf(escrow)
    const header = await this.#apply(path, await addSlot(before, volumeKey, { slot, passphrase, cost: await this.cost(), token }))
    const old = recoverySlots(before.metadata).filter(({ recipients }) => (recipients === undefined) === (escrow.recipients === undefined))
    return this.removeSlots(
      path,
      header,
      old.map((each) => each.slot),
    )
  }

  /** Removes keys. */
  async removeSlots(path: string, before: Header, slots: readonly number[]): Promise<Header> {
    let header = before
    for (const slot of slots) header = await this.#apply(path, removeSlot(header, slot))
    return header
  }

  /** Whether a key is in its slot already. Throws KeyError where neither is certain, so that nothing is replaced by guess. */
  async #opens(path: string, { metadata }: Header, use: KeyUse): Promise<boolean> {
    const token = metadata.tokens[use.slot]
    if (!metadata.keyslots[use.slot] || !fits(use.key, token, this.kinds) || !isCurrent(use.key, token, this.kinds)) return false
    const passphrase = await passphraseOf(use, token, this.kinds).catch(staleIsNone)
    if (!passphrase) return false
    return withDevice(this.machine.kernel.block, path, known, async (device) => {
      const volumeKey = await openSlot(metadata, use.slot, passphrase, (offset, length) => device.read(offset, length))
      volumeKey?.fill(0)
      return volumeKey !== undefined
    })
  }

  async #apply(path: string, { header, steps }: Change): Promise<Header> {
    await this.write(path, steps)
    return header
  }

  /** Writes steps to a device, each flushed before the next. */
  write(path: string, steps: readonly WriteStep[]): Promise<void> {
    return withDevice(this.machine.kernel.block, path, { ...known, write: true }, (device) => writeSteps(device, steps))
  }

  /** The cost of key derivation on this machine, measured once. */
  async cost(): Promise<Cost> {
    this.#cost ??= await measureCost(this.machine.clock, capacityOf(this.machine.kernel))
    return this.#cost
  }
}

const staleIsNone = (error: unknown): undefined => {
  if (!(error instanceof KeyError && error.stale)) throw error
}

const isSame = (a: EncryptionKey, b: EncryptionKey): boolean => JSON.stringify({ ...a, slot: 0 }) === JSON.stringify({ ...b, slot: 0 })
