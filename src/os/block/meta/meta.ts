/**
 * What the machine keeps about itself beside its configuration: short texts under tags, on the META partition once there
 * is one, and in memory until then. Everybody sees them as resources.
 */
import type { Logger } from '../../../cosi/log.ts'
import type { Store } from '../../../cosi/store.ts'
import type { Kernel } from '../../kernel.ts'
import { MetaKey, MetaLoad } from '../../runtime/resources/meta.ts'
import { known, withDevice } from '../device.ts'
import { VolumeStatus } from '../resources/volume-status.ts'
import { type MetaContent, readMetaPartition, writeMetaPartition } from './partition.ts'

/** Tags with a meaning (the others are free). */
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
  /** Of our own, beside those with a fixed meaning. */
  failedReleases: 0x20,
  minimumRelease: 0x21,
} as const

/** Tags in which the system remembers its upgrades. A caller that wrote them could undo or forge a trial. */
export const upgradeTags: ReadonlySet<number> = new Set([
  metaTags.upgradeFallback,
  metaTags.stagedImage,
  metaTags.stagedOptions,
  metaTags.failedReleases,
  metaTags.minimumRelease,
])

/** The id under which a tag is seen. */
export const metaId = (tag: number): string => `0x${tag.toString(16).padStart(2, '0')}`

interface Parts {
  readonly kernel: { readonly block: Pick<Kernel['block'], 'openDevice'> }
  readonly store: Store
  readonly log: Logger
}

/** The values of META. */
export class Meta {
  #values = new Map<number, string>()
  /** What was changed since the partition was read or written last; undefined stands for a value that was taken away. */
  readonly #changed = new Map<number, string | undefined>()
  #device: string | undefined
  #turn: Promise<unknown> = Promise.resolve()

  constructor(readonly parts: Parts) {}

  /** A value, undefined when there is none. */
  get(tag: number): string | undefined {
    return this.#values.get(tag)
  }

  /** Keeps a value in memory; `flush` makes it last. */
  set(tag: number, value: string): void {
    this.#values.set(tag, value)
    this.#changed.set(tag, value)
    this.parts.store.put(MetaKey, metaId(tag), { value })
  }

  /** Takes a value away; false when there was none. */
  delete(tag: number): boolean {
    if (!this.#values.delete(tag)) return false
    this.#changed.set(tag, undefined)
    this.#hide(tag)
    return true
  }

  /** Writes what was changed to the partition; false as long as there is none, and everything stays in memory. */
  flush(): Promise<boolean> {
    return this.#alone(async () => {
      if (!this.#device) return false
      await this.#write(this.#device)
      return true
    })
  }

  /** Takes a partition into use: what it holds is known from now on, but for what was set meanwhile, and that is written to it. */
  use(device: string): Promise<void> {
    return this.#alone(async () => {
      const content = await this.#read(device)
      this.#device = device
      this.#take(content)
      if (this.#changed.size > 0) await this.#write(device)
    })
  }

  /** Waits until it is known whether there is a partition, and reads it. */
  async reload(signal?: AbortSignal): Promise<void> {
    const settled = ({ spec: { phase } }: { spec: { phase: string } }) => ['ready', 'missing', 'failed'].includes(phase)
    const { spec } = await this.parts.store.until(VolumeStatus, 'META', settled, { signal })
    // A partition that cannot be read is no reason to start over and over: what is known stays in memory.
    if (spec.phase === 'ready' && spec.location)
      await this.use(spec.location).catch((error) => this.parts.log.error('META cannot be read', { device: spec.location, error }))
    else if (spec.phase === 'failed') this.parts.log.warn('META cannot be read', { error: spec.errorMessage })
    this.parts.store.put(MetaLoad, 'meta-loaded', { done: true })
  }

  /** The partition is gone: what is known stays in memory. */
  release(): Promise<void> {
    return this.#alone(async () => {
      this.#device = undefined
    })
  }

  /** One after the other: two who write at once would take each other's copies for the old ones. */
  #alone<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(run)
    this.#turn = turn.catch(() => {}) // it is the caller's; the next one begins anew
    return turn
  }

  #read(device: string): Promise<MetaContent> {
    return withDevice(this.parts.kernel.block, device, known, readMetaPartition)
  }

  #take({ values, legacy }: MetaContent): void {
    const known = new Map([...legacy, ...values].map(([tag, value]) => [tag, Buffer.from(value).toString()]))
    for (const [tag, value] of this.#changed)
      if (value === undefined) known.delete(tag)
      else known.set(tag, value)
    for (const tag of this.#values.keys()) if (!known.has(tag)) this.#hide(tag)
    for (const [tag, value] of known) this.parts.store.put(MetaKey, metaId(tag), { value })
    this.#values = known
  }

  async #write(device: string): Promise<void> {
    const changed = new Map(this.#changed)
    await withDevice(this.parts.kernel.block, device, { ...known, write: true }, async (open) => {
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

  #hide(tag: number): void {
    const { store } = this.parts
    if (store.get(MetaKey, metaId(tag)) && store.teardown(MetaKey, metaId(tag))) store.destroy(MetaKey, metaId(tag))
  }
}
