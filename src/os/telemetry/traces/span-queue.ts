import type { Span } from './span.ts'

/** Spans at most; the oldest gives way. */
const capacity = 2048
const batchSize = 512
/** Milliseconds for which spans wait for others. */
const defaultGatherTime = 5000

/** Spans that wait for a collector. They stay when the settings of the export change. */
export class SpanQueue {
  readonly #spans: Span[] = []
  readonly #gatherTime: number
  #removed = 0
  #hurry = false
  #wake = () => {}
  /** Counts a span that gave way to another. */
  onDrop: (count: number) => void = () => {}

  constructor(gatherTime: number = defaultGatherTime) {
    this.#gatherTime = gatherTime
  }

  /** Spans that no collector has. */
  get behind(): number {
    return this.#spans.length
  }

  /** How many spans left the queue. */
  get positions(): Record<string, number> {
    return { spans: this.#removed }
  }

  add(span: Span): void {
    if (this.#spans.length >= capacity) {
      this.#spans.shift()
      this.onDrop(1)
    }
    this.#spans.push(span)
    this.#wake()
  }

  /** What waits goes out without waiting for more. */
  flush(): void {
    this.#hurry = true
    this.#wake()
  }

  /** The oldest spans, again and again until they are removed, until the signal. */
  async *batches(signal: AbortSignal): AsyncGenerator<readonly Span[], void> {
    const aborted = () => this.#wake()
    signal.addEventListener('abort', aborted)
    try {
      while (!signal.aborted) {
        await this.#until(() => signal.aborted || this.#spans.length > 0)
        await this.#until(() => signal.aborted || this.#hurry || this.#spans.length >= batchSize, this.#gatherTime)
        if (!signal.aborted && this.#spans.length > 0) yield this.#spans.slice(0, batchSize)
      }
    } finally {
      signal.removeEventListener('abort', aborted)
    }
  }

  /** Removes what was taken; spans that came meanwhile may have pushed out the oldest of these. */
  remove(batch: readonly Span[]): void {
    const gone = new Set(batch)
    let count = 0
    while (this.#spans[count] && gone.has(this.#spans[count] as Span)) count++
    this.#spans.splice(0, count)
    this.#removed += count
    if (this.#spans.length === 0) this.#hurry = false
  }

  async #until(holds: () => boolean, limit?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = () => {
      if (holds()) resolve()
    }
    const timer = limit === undefined ? undefined : setTimeout(resolve, limit)
    timer?.unref()
    this.#wake()
    await promise.finally(() => {
      clearTimeout(timer)
      this.#wake = () => {}
    })
  }
}
