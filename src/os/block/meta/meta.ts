/**
 * META: short values by tag that the machine keeps besides its configuration, on the META partition once it exists and in
 * memory until then. They are published as resources.
 */

import type { Logger } from '../../../cosi/log.ts'
import type { Store } from '../../../cosi/store.ts'
import { SerialQueue } from '../../../timing/serial-queue.ts'
import type { Kernel } from '../../kernel.ts'
import { MetaKey, MetaLoad } from '../../runtime/resources/meta.ts'
import { known, withDevice } from '../device.ts'
import { VolumeStatus } from '../resources/volume-status.ts'
import { type MetaContent, readMetaPartition, writeMetaPartition } from './partition.ts'

/** Reserved tags. The others are free for users. */
export const metaTags = {
  upgradeFallback: 6,
  stagedImage: 7,
  stagedOptions: 8,
  stateEncryption: 9,
  platformNetwork: 10,
  downloadCode: 11,
  uuidOverride: 15,
  uniqueToken: 16,
  bootloader: 17,
  /** Tags of this system, in addition to those of the field. */
  failedReleases: 0x20,
  minimumRelease: 0x21,
} as const

/** Tags with the upgrade state. A caller who wrote them could undo or forge an upgrade trial. */
export const upgradeTags: ReadonlySet<number> = new Set([
  metaTags.upgradeFallback,
  metaTags.stagedImage,
  metaTags.stagedOptions,
  metaTags.failedReleases,
  metaTags.minimumRelease,
])

/** The resource id of a tag. */
export const metaId = (tag: number): string => `0x${tag.toString(16).padStart(2, '0')}`

interface Dependencies {
  readonly kernel: { readonly block: Pick<Kernel['block'], 'openDevice'> }
  readonly store: Store
  readonly log: Logger
}

/** The values of META. */
export class Meta {
  #values = new Map<number, string>()
  /** Changes since the last read or write of the partition; undefined marks a deleted value. */
  readonly #changed = new Map<number, string | undefined>()
  #device: string | undefined
  /** Concurrent writers would take each other's copies for the old ones. */
  readonly #writes = new SerialQueue()

  constructor(readonly deps: Dependencies) {}

  /** Returns a value, undefined if not set. */
  get(tag: number): string | undefined {
    return this.#values.get(tag)
  }

  /** Sets a value in memory; `flush` makes it persistent. */
  set(tag: number, value: string): void {
    this.#values.set(tag, value)
    this.#changed.set(tag, value)
    this.#show(tag, value)
  }

  /** Deletes a value. Returns false if it was not set. */
  delete(tag: number): boolean {
    if (!this.#values.delete(tag)) return false
    this.#changed.set(tag, undefined)
    this.#hide(tag)
    return true
  }

  /** Writes changes to the partition. Returns false while there is none, and everything stays in memory. */
  flush(): Promise<boolean> {
    return this.#writes.run(async () => {
      if (!this.#device) return false
      await this.#write(this.#device)
      return true
    })
  }

  /** Starts using a partition: reads its values and writes those changed in memory meanwhile. */
  use(device: string): Promise<void> {
    return this.#writes.run(async () => {
      const content = await this.#read(device)
      this.#device = device
      this.#take(content)
      if (this.#changed.size > 0) await this.#write(device)
    })
  }

  /**
   * Waits until the state of the partition is known, and reads it. While there is none, values that the boot medium has given are
   * used, and written when the machine is installed; tags with the upgrade state are left out.
   */
  async reload(signal?: AbortSignal, given: ReadonlyMap<number, string> = new Map()): Promise<void> {
    const settled = ({ spec: { phase } }: { spec: { phase: string } }) => ['ready', 'missing', 'failed'].includes(phase)
    const { spec } = await this.deps.store.until(VolumeStatus, 'META', settled, { signal })
    // An unreadable partition must not cause a reboot loop: the values stay in memory.
    if (spec.phase === 'ready' && spec.location)
      await this.use(spec.location).catch((error) => this.deps.log.error('read META failed', { device: spec.location, error }))
    else if (spec.phase === 'missing') for (const [tag, value] of given) if (!upgradeTags.has(tag)) this.set(tag, value)
    if (spec.phase === 'failed') this.deps.log.warn('read META failed', { error: spec.errorMessage })
    this.deps.store.put(MetaLoad, 'meta-loaded', { done: true })
  }

  /** The partition was removed: the values stay in memory. */
  release(): Promise<void> {
    return this.#writes.run(async () => {
      this.#device = undefined
    })
  }

  #read(device: string): Promise<MetaContent> {
    return withDevice(this.deps.kernel.block, device, known, readMetaPartition)
  }

  #take({ values, legacy }: MetaContent): void {
    const known = new Map([...legacy, ...values].map(([tag, value]) => [tag, Buffer.from(value).toString()]))
    for (const [tag, value] of this.#changed)
      if (value === undefined) known.delete(tag)
      else known.set(tag, value)
    for (const tag of this.#values.keys()) if (!known.has(tag)) this.#hide(tag)
    for (const [tag, value] of known) this.#show(tag, value)
    this.#values = known
  }

  async #write(device: string): Promise<void> {
    const changed = new Map(this.#changed)
    await withDevice(this.deps.kernel.block, device, { ...known, write: true }, async (open) => {
      const { values, legacy } = await readMetaPartition(open)
      for (const [tag, value] of changed) {
        legacy.delete(tag)
        if (value === undefined) values.delete(tag)
        else values.set(tag, Buffer.from(value))
      }
      await writeMetaPartition(open, { values, legacy })
    })
    for (const [tag, value] of changed) if (this.#changed.get(tag) === value) this.#changed.delete(tag)
  }

  #show(tag: number, value: string): void {
    this.deps.store.put(MetaKey, metaId(tag), { value: tag === metaTags.stateEncryption ? withoutPassphrases(value) : value })
  }

  #hide(tag: number): void {
    const { store } = this.deps
    if (store.get(MetaKey, metaId(tag)) && store.teardown(MetaKey, metaId(tag))) store.destroy(MetaKey, metaId(tag))
  }
}

/** Readers see the values of META, but not the passphrases of STATE. */
const withoutPassphrases = (record: string): string => record.replace(/("KeyData"\s*:\s*)"(?:[^"\\]|\\.)*"/g, '$1"**REDACTED**"')
