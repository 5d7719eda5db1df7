/** The headers of encrypted volumes: they are created, and opened with the first key that works. */
import type { OpenDevice } from '../../../linux/block/device.ts'
import { newVolume } from '../../../wire/luks2/format.ts'
import { type Header, readHeader } from '../../../wire/luks2/header.ts'
import { openSlot } from '../../../wire/luks2/key-slots.ts'
import type { Machine } from '../../area.ts'
import { known, withDevice } from '../device.ts'
import { KeyChanges } from './key-changes.ts'
import { formatOf } from './parameters.ts'
import { type Encryption, type EncryptionKey, KeyError, type KeySources, newPassphrase, recoveryKeyAt } from './passphrase.ts'
import { type RecoverySlot, recoverySlots } from './recovery.ts'
import type { SealedKinds } from './sealed-kind.ts'
import { reasonOf, type Unlocked, Unlocker } from './unlock.ts'

/** What a volume is opened with. */
export interface Desired {
  readonly encryption: Encryption
  readonly sources: KeySources
  /** Whether the key slots follow the configuration. STATE is first opened without one. */
  readonly sync: boolean
  /** Recipients of the recovery key that the machine makes; what is in the header stays while they are not known. */
  readonly recipients?: readonly string[] | undefined
}

/** The recovery keys of a volume; at least one. */
export interface Recovery {
  readonly keys: readonly RecoverySlot[]
  /** Whether no other key opened the volume. */
  readonly locked: boolean
}

/** Keys in the order of their slots. */
export const inOrder = ({ keys }: Encryption): EncryptionKey[] => [...keys].sort((a, b) => a.slot - b.slot)

/** Headers on the devices of a machine. Its methods are called one at a time. */
export class VolumeHeaders {
  /** Changes of their keys. */
  readonly changes: KeyChanges
  readonly #unlocker: Unlocker
  /** Recovery keys by volume, as its header was last read, with its device. */
  readonly #recoveries = new Map<string, Recovery & { path: string }>()
  /** Recovery keys that are known until the machine restarts: other volumes are opened after STATE, and may have another one. */
  readonly #given: string[] = []

  constructor(
    readonly machine: Pick<Machine, 'kernel' | 'log' | 'clock'>,
    readonly kinds: SealedKinds,
  ) {
    this.changes = new KeyChanges(machine, kinds)
    this.#unlocker = new Unlocker(kinds, machine.clock)
  }

  /** Recovery keys by volume. */
  get recoveries(): ReadonlyMap<string, Recovery> {
    return this.#recoveries
  }

  /** Creates a volume with the first key that can be made. */
  async create(id: string, path: string, { encryption, sources }: Desired): Promise<Unlocked> {
    const failed: string[] = []
    let passing = false
    for (const key of inOrder(encryption)) {
      const made = await newPassphrase({ key, slot: key.slot, volume: id, sources }, this.kinds).catch((error: unknown) => {
        passing ||= isPassing(error)
        failed.push(reasonOf(key, error))
      })
      if (!made) continue
      const format = await formatOf(this.machine.kernel, path, encryption)
      const cost = await this.changes.cost()
      this.machine.log.info('creating encrypted volume', { volume: id, device: path, cipher: format.cipher, slot: key.slot, key: key.type })
      const { header, volumeKey, steps } = await newVolume(format, { slot: key.slot, ...made, cost })
      await this.changes.write(path, steps)
      return { header, volumeKey, slot: key.slot, key, failed }
    }
    throw new KeyError(`no key for encrypted volume "${id}" can be used: ${failed.join('; ')}`, { passing })
  }

  /** Opens a header with the key that opened it before, else with the first of the configuration that works, at last the recovery key. */
  async unlock(volume: string, path: string, { encryption, sources: own }: Desired, before: EncryptionKey | undefined): Promise<Unlocked> {
    const recovery = this.#given
    const keys = [...(before ? [before] : []), ...inOrder(encryption), ...recovery.map((_, place) => recoveryKeyAt(place))]
    return this.#reading(path, async (header, device) => {
      const read = (offset: number, length: number) => device.read(offset, length)
      try {
        return await this.#unlocker.unlock({ volume, path, header, read, keys, sources: { ...own, recovery } })
      } catch (error) {
        if (!before) this.note(volume, path, header, error instanceof KeyError)
        throw error
      }
    })
  }

  /** Volumes without another key that this recovery key opens. They open in the next round. */
  async giveRecovery(key: string): Promise<string[]> {
    const opened: string[] = []
    const passphrase = new Uint8Array(Buffer.from(key))
    for (const [id, { path, locked }] of this.#recoveries)
      if (locked && (await this.#reading(path, (header, device) => opensRecovery(header, passphrase, device)))) opened.push(id)
    if (opened.length > 0) this.know(key)
    return opened
  }

  /** Keeps a recovery key that opens a volume, and returns it as a key of that. */
  know(key: string): EncryptionKey {
    if (!this.#given.includes(key)) this.#given.push(key)
    return recoveryKeyAt(this.#given.indexOf(key))
  }

  /** The header on a device as it is now. */
  read(path: string): Promise<Header> {
    return this.#reading(path, async (header) => header)
  }

  #reading<T>(path: string, use: (header: Header, device: OpenDevice) => Promise<T>): Promise<T> {
    return withDevice(this.machine.kernel.block, path, known, async (device) => {
      const header = await readHeader((offset, length) => device.read(offset, length), device.size)
      return use(await this.changes.mended(path, header), device)
    })
  }

  /** Publishes the recovery keys of a header; `locked` where no other key opens it. */
  note(id: string, path: string, { metadata }: Header, locked: boolean): void {
    const keys = recoverySlots(metadata)
    if (keys.length > 0) this.#recoveries.set(id, { keys, locked, path })
    else this.#recoveries.delete(id)
  }
}

/** Whether the cause of a failure may pass by itself. */
export const isPassing = (error: unknown): boolean => error instanceof KeyError && error.passing

async function opensRecovery({ metadata }: Header, passphrase: Uint8Array, device: OpenDevice): Promise<boolean> {
  for (const { slot } of recoverySlots(metadata)) {
    const volumeKey = await openSlot(metadata, slot, passphrase, (offset, length) => device.read(offset, length))
    volumeKey?.fill(0)
    if (volumeKey) return true
  }
  return false
}
