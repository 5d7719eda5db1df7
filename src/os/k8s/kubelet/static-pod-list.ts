/**
 * The list of static pods as the kubelet asks for it: a reader that has seen the list as it is waits until it changes,
 * so that a pod starts at once and a node at rest is left alone. Who has seen what is known by the connection.
 */

/** Below the ten seconds after which the kubelet gives a question up. */
const patience = 8000
const readersKept = 64

/** A text and those who wait for another one. */
export class StaticPodList {
  #text: string
  #version = 0
  #changed = Promise.withResolvers<void>()
  readonly #seen = new Map<string, number>()
  readonly #patience: number

  constructor(items: readonly unknown[] = [], options: { patience?: number } = {}) {
    this.#text = podList(items)
    this.#patience = options.patience ?? patience
  }

  /** Replaces the pods; readers that wait are answered if anything is different. */
  set(items: readonly unknown[]): void {
    const text = podList(items)
    if (text === this.#text) return
    this.#text = text
    this.#version++
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  /** The list: at once for a reader that has not seen it, else when it changes or patience is over. */
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
    const timer = setTimeout(over.resolve, this.#patience)
    signal.addEventListener('abort', () => over.resolve(), { once: true })
    await Promise.race([this.#changed.promise, over.promise])
    clearTimeout(timer)
  }
}

function podList(items: readonly unknown[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items })
}
