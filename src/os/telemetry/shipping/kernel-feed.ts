/** The kernel's log for one destination. The kernel keeps the records, each with a number; a position is the last one delivered. */
import type { Kernel } from '../../kernel.ts'
import type { Batch, Dropped, Feed } from './feed.ts'
import { kernelMessage } from './kernel-message.ts'

/** Where records come from. */
export interface KernelSources {
  readonly kernel: Pick<Kernel, 'kmsg' | 'time'>
  now(): Date
  readonly dropped: Dropped
}

const source = 'kernel'

/** The records of the kernel. */
export class KernelFeed implements Feed {
  readonly #sources: KernelSources
  #delivered = -1
  /** The newest record that was read. */
  #seen = -1

  constructor(sources: KernelSources) {
    this.#sources = sources
  }

  get behind(): number {
    return this.#seen - this.#delivered
  }

  get positions(): Record<string, number> {
    return this.#delivered < 0 ? {} : { [source]: this.#delivered }
  }

  async *batches(signal: AbortSignal): AsyncGenerator<Batch, void> {
    const { kernel, now, dropped } = this.#sources
    let last = this.#delivered
    for await (const record of kernel.kmsg.readKernelLog({ follow: true, signal })) {
      const { sequence } = record
      if (sequence <= last) continue
      // What was overwritten before this system began to read is nothing that it lost.
      const lost = this.#seen < 0 ? 0 : sequence - last - 1
      if (lost > 0) dropped(source, lost, 'records')
      // What is gone is never sent, and is counted once.
      if (lost > 0 || this.#seen < 0) this.#delivered = Math.max(this.#delivered, sequence - 1)
      last = sequence
      this.#seen = Math.max(this.#seen, sequence)
      // Records have the time since the start, and the wall clock may be stepped: each is reckoned by the clock as it is now.
      const bootedAt = now().getTime() - Number(kernel.time.clock('boottime') / 1_000_000n)
      const delivered = () => {
        this.#delivered = Math.max(this.#delivered, sequence)
      }
      yield { texts: [kernelMessage(record, bootedAt)], delivered }
    }
  }
}
