/**
 * Encrypted volumes: they are created, opened with the first key that works, and their key slots follow the configuration. Each
 * change of a header is a sequence of writes after any of which the volume can be opened with a key that is configured.
 */
import type { Deadline } from '../../../cosi/clock.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { WriteStep } from '../../../wire/gpt/table.ts'
import type { Cost } from '../../../wire/luks2/derive.ts'
import { newVolume } from '../../../wire/luks2/format.ts'
import { changed, type Header, readHeader, writeHeader } from '../../../wire/luks2/header.ts'
import { addSlot, type Change, openSlot, removeSlot } from '../../../wire/luks2/key-slots.ts'
import type { Machine } from '../../area.ts'
import { known, probeDevice, withDevice, writeSteps } from '../device.ts'
import { OtherContent, otherContent } from '../volumes/prepare.ts'
import { measureCost } from './cost.ts'
import { closeMapping, openMapping } from './mapping.ts'
import { capacityOf, formatOf } from './parameters.ts'
import { type Encryption, type EncryptionKey, KeyError, type KeySources, newPassphrase, passphraseOf } from './passphrase.ts'
import { fits, isCurrent, type KeyUse, type SealedKinds } from './sealed-kind.ts'
import { reasonOf, type Unlocked, Unlocker } from './unlock.ts'

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
}

/** What a volume is opened with. */
export interface Desired {
  readonly encryption: Encryption
  readonly sources: KeySources
  /** Whether the key slots follow the configuration. STATE is first opened without one. */
  readonly sync: boolean
}

interface Held extends Opened {
  /** When keys that failed for a cause that may pass are tried again. */
  readonly due?: Deadline | undefined
  /** The key that opened it, still in the header. */
  readonly key: EncryptionKey
  readonly as: string
}

/** Milliseconds between attempts to bring keys in line: each derives the keys again. */
const syncInterval = 60_000

const inOrder = ({ keys }: Encryption): EncryptionKey[] => [...keys].sort((a, b) => a.slot - b.slot)

/** The encrypted volumes of a machine. */
export class EncryptedVolumes {
  readonly #held = new Map<string, Held>()
  readonly #unlocker: Unlocker
  #cost: Cost | undefined

  constructor(
    readonly machine: Pick<Machine, 'kernel' | 'log' | 'clock'>,
    readonly kinds: SealedKinds,
  ) {
    this.#unlocker = new Unlocker(kinds, machine.clock)
  }

  /** Volumes that are open. */
  get open(): string[] {
    return [...this.#held.keys()]
  }

  /**
   * Opens a volume, and creates it on an empty device. Throws OtherContent for a device that holds something else, KeyError where no
   * key opens it. An open volume stays open when its keys change; what fails then is in `failedSyncs`.
   */
  async provide(id: string, path: string, desired: Desired): Promise<Opened> {
    const as = JSON.stringify([desired.encryption, desired.sources.machineUUID, desired.sources.salt !== undefined, desired.sync])
    const before = this.#held.get(id)
    if (before?.as === as && !before.due?.over) return before
    try {
      const held = await this.#provide(id, path, desired, before)
      this.#held.set(id, { ...held, as })
      return held
    } catch (error) {
      if (!before) throw error
      this.machine.log.error('encryption keys not changed', { volume: id, error: messageOf(error) })
      const held = { ...before, as, failedSyncs: [messageOf(error)], due: isPassing(error) ? this.#nextSync() : undefined }
      this.#held.set(id, held)
      return held
    }
  }

  /** Milliseconds until the keys of an open volume are tried again; undefined when none are due. */
  get dueIn(): number | undefined {
    const due = [...this.#held.values()].flatMap(({ due }) => due?.left ?? [])
    return due.length > 0 ? Math.min(...due) : undefined
  }

  #nextSync(): Deadline {
    return this.machine.clock.deadline(syncInterval)
  }

  /** Closes a volume. Returns false while it is in use. */
  close(id: string): boolean {
    if (this.#held.has(id) && !closeMapping(this.machine.kernel, id)) return false
    if (this.#held.delete(id)) this.machine.log.info('encrypted volume closed', { volume: id })
    return true
  }

  async #provide(id: string, path: string, desired: Desired, before: Held | undefined): Promise<Omit<Held, 'as'>> {
    const { kernel, log } = this.machine
    const { found, size } = await probeDevice(kernel.block, path)
    if (found && found.name !== 'luks') throw new OtherContent(otherContent(id, 'an encrypted volume', path, found.name))
    const unlocked = found ? await this.#unlock(id, path, desired, before) : await this.#create(id, path, desired)
    try {
      const { header, slot, key, volumeKey } = unlocked
      for (const reason of unlocked.failed) log.warn('encryption key does not open volume', { volume: id, reason })
      const { failed: failedSyncs, passing } = desired.sync ? await this.#sync(id, path, desired, unlocked) : { failed: [], passing: false }
      const due = passing ? this.#nextSync() : undefined
      if (before) return { ...before, slot, key, failedSyncs, due }
      const device = openMapping(kernel, id, { path, size, header, volumeKey, options: desired.encryption.perfOptions ?? [] })
      log.info('encrypted volume opened', { volume: id, device, slot, key: key.type })
      return { device, uuid: header.uuid, slot, key, failedSyncs, due }
    } finally {
      unlocked.volumeKey.fill(0)
    }
  }

  /** Creates a volume with the first key that can be made. */
  async #create(id: string, path: string, { encryption, sources }: Desired): Promise<Unlocked> {
    const failed: string[] = []
    let passing = false
    for (const key of inOrder(encryption)) {
      const made = await newPassphrase({ key, slot: key.slot, volume: id, sources }, this.kinds).catch((error: unknown) => {
        passing ||= isPassing(error)
        failed.push(reasonOf(key, error))
      })
      if (!made) continue
      const format = await formatOf(this.machine.kernel, path, encryption)
      const cost = await this.#costOf()
      this.machine.log.info('creating encrypted volume', { volume: id, device: path, cipher: format.cipher, slot: key.slot, key: key.type })
      const { header, volumeKey, steps } = await newVolume(format, { slot: key.slot, ...made, cost })
      await this.#write(path, steps)
      return { header, volumeKey, slot: key.slot, key, failed }
    }
    throw new KeyError(`no key for encrypted volume "${id}" can be used: ${failed.join('; ')}`, { passing })
  }

  /** Opens the header with the key that opened it before, else with the first of the configuration that works. */
  async #unlock(id: string, path: string, { encryption, sources }: Desired, before: Held | undefined): Promise<Unlocked> {
    const keys = [...(before ? [before.key] : []), ...inOrder(encryption)]
    return withDevice(this.machine.kernel.block, path, known, async (device) => {
      const read = (offset: number, length: number) => device.read(offset, length)
      const header = await this.#mended(path, await readHeader(read, device.size))
      return this.#unlocker.unlock({ volume: id, path, header, read, keys, sources })
    })
  }

  /** Writes the damaged copy of a header again. */
  async #mended(path: string, header: Header): Promise<Header> {
    if (!header.damaged) return header
    this.machine.log.warn('encryption header copy damaged or outdated, restoring it', { device: path, copy: header.damaged })
    const whole = changed(header, header.metadata)
    await this.#write(path, writeHeader(whole))
    return whole
  }

  /** Brings the key slots in line with the configuration; returns what failed. No slot is removed unless a configured key works. */
  async #sync(
    id: string,
    path: string,
    { encryption, sources }: Desired,
    unlocked: Unlocked,
  ): Promise<{ failed: string[]; passing: boolean }> {
    const failed: string[] = []
    let passing = false
    const working = new Set<number>()
    let { header } = unlocked
    const attempt = async (slot: number, run: () => Promise<void>) => {
      try {
        await run()
      } catch (error) {
        const reason = messageOf(error)
        passing ||= isPassing(error)
        failed.push(`slot ${slot}: ${reason}`)
        this.machine.log.error('encryption key not in sync', { volume: id, slot, error: reason })
      }
    }
    const keys = inOrder(encryption)
    for (const key of keys)
      await attempt(key.slot, async () => {
        const use = { key, slot: key.slot, volume: id, sources }
        const token = header.metadata.tokens[key.slot]
        const opensAlready = key.slot === unlocked.slot && isSame(key, unlocked.key) && isCurrent(key, token, this.kinds)
        if (!opensAlready && !(await this.#opens(path, header, use)))
          header = await this.#change(path, id, 'encryption key added', key.slot, async () =>
            addSlot(header, unlocked.volumeKey, { ...(await newPassphrase(use, this.kinds)), slot: key.slot, cost: await this.#costOf() }),
          )
        working.add(key.slot)
      })
    const superfluous = Object.keys(header.metadata.keyslots).filter((slot) => !keys.some((key) => String(key.slot) === slot))
    for (const slot of working.size > 0 ? superfluous.map(Number) : [])
      await attempt(slot, async () => {
        header = await this.#change(path, id, 'encryption key removed', slot, async () => removeSlot(header, slot))
      })
    return { failed, passing }
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

  async #change(path: string, volume: string, phrase: string, slot: number, make: () => Promise<Change>): Promise<Header> {
    const { header, steps } = await make()
    await this.#write(path, steps)
    this.machine.log.info(phrase, { volume, slot })
    return header
  }

  #write(path: string, steps: readonly WriteStep[]): Promise<void> {
    return withDevice(this.machine.kernel.block, path, { ...known, write: true }, (device) => writeSteps(device, steps))
  }

  async #costOf(): Promise<Cost> {
    this.#cost ??= await measureCost(this.machine.clock, capacityOf(this.machine.kernel))
    return this.#cost
  }
}

const isPassing = (error: unknown): boolean => error instanceof KeyError && error.passing

const staleIsNone = (error: unknown): undefined => {
  if (!(error instanceof KeyError && error.stale)) throw error
}

const isSame = (a: EncryptionKey, b: EncryptionKey): boolean => JSON.stringify({ ...a, slot: 0 }) === JSON.stringify({ ...b, slot: 0 })
