/**
 * The list of static pods as the kubelet polls it. A reader that has the current list waits until it changes, so that a pod
 * starts at once and an idle node stays idle. Readers are identified by their connection.
 */

/** Long-poll timeout in milliseconds, below the ten seconds after which the kubelet gives up a request. */
const defaultTimeout = 8000
const readersKept = 64

/** A list and the readers that wait for another one. */
export class StaticPodList {
  #text: string
  #version = 0
  #changed = Promise.withResolvers<void>()
  readonly #seen = new Map<string, number>()
  readonly #timeout: number

  constructor(items: readonly unknown[] = [], options: { timeout?: number } = {}) {
    this.#text = podList(items)
    this.#timeout = options.timeout ?? defaultTimeout
  }

  /** Replaces the pods; waiting readers are answered if anything has changed. */
  set(items: readonly unknown[]): void {
    const text = podList(items)
    if (text === this.#text) return
    this.#text = text
    this.#version++
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  /** The list: at once for a reader that does not have it, else when it changes or after the timeout. */
  async read(reader: string, signal: AbortSignal): Promise<string> {
    if (this.#seen.get(reader) === this.#version) await this.#change(signal)
    this.#seen.delete(reader)
    this.#seen.set(reader, this.#version)
    for (const [oldest] of this.#seen) {
      if (this.#seen.size <= readersKept) break
      this.#seen.delete(oldest)
    }
    return this.#text
  }

  async #change(signal: AbortSignal): Promise<void> {
    const over = Promise.withResolvers<void>()
    const timer = setTimeout(over.resolve, this.#timeout)
    signal.addEventListener('abort', () => over.resolve(), { once: true })
    await Promise.race([this.#changed.promise, over.promise])
    clearTimeout(timer)
  }
}

function podList(items: readonly unknown[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items })
}
