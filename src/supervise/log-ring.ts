/**
 * The most recent output of a service, in memory. A reader holds an absolute offset, so a slow reader costs nothing and
 * loses only what has been overwritten. The buffer grows on demand up to its capacity.
 */

const firstSize = 4096
const chunkSize = 64 * 1024
const newline = 10
const encoder = new TextEncoder()

/** What to read of a log. */
export interface LogQuery {
  /** Start this many lines before the end. Default, also for negative values: start at the oldest byte. */
  tailLines?: number
  /** Start no earlier than this offset, a former value of `end`. */
  from?: number
  /** Wait for more output until the signal is aborted. */
  follow?: boolean
  signal?: AbortSignal
}

/** A bounded log with any number of readers. */
export class LogRing {
  readonly #capacity: number
  #buffer = new Uint8Array(0)
  #end = 0
  readonly #waiting = new Set<() => void>()

  readonly #written: () => void

  /** `written` is called after each write. */
  constructor(capacity = 512 * 1024, written: () => void = () => {}) {
    this.#capacity = capacity
    this.#written = written
  }

  /** Appends bytes and drops the oldest beyond the capacity. */
  write(data: Uint8Array | string): void {
    let bytes = typeof data === 'string' ? encoder.encode(data) : data
    if (bytes.length === 0) return
    if (bytes.length > this.#capacity) {
      this.#end += bytes.length - this.#capacity
      bytes = bytes.subarray(bytes.length - this.#capacity)
    }
    this.#grow(Math.min(this.#capacity, this.#end - this.#start + bytes.length))
    const size = this.#buffer.length
    const at = this.#end % size
    const head = Math.min(bytes.length, size - at)
    this.#buffer.set(bytes.subarray(0, head), at)
    this.#buffer.set(bytes.subarray(head), 0)
    this.#end += bytes.length
    for (const wake of [...this.#waiting]) wake()
    this.#written()
  }

  /** Appends a line, adding a newline if it has none. */
  line(text: string): void {
    this.write(text.endsWith('\n') ? text : `${text}\n`)
  }

  /** How many bytes have been written in total. */
  get end(): number {
    return this.#end
  }

  /** Yields the log in chunks of at most 64 KiB. */
  async *read({ tailLines, from = 0, follow = false, signal }: LogQuery = {}): AsyncGenerator<Uint8Array> {
    let at = Math.max(from, tailLines === undefined || tailLines < 0 ? this.#start : this.#tail(tailLines))
    while (!signal?.aborted) {
      at = Math.max(at, this.#start)
      if (at < this.#end) {
        const chunk = this.#slice(at, Math.min(this.#end, at + chunkSize))
        at += chunk.length
        yield chunk
      } else if (follow) await this.#more(signal)
      else return
    }
  }

  /** The offset of the oldest retained byte. */
  get start(): number {
    return this.#start
  }

  /** The retained bytes from an offset on, a former value of `end`; at most `limit`. */
  since(from: number, limit = Number.POSITIVE_INFINITY): Uint8Array {
    const at = Math.max(from, this.#start)
    return this.#slice(at, Math.min(this.#end, at + limit))
  }

  /** The retained bytes as text. */
  toString(): string {
    return new TextDecoder().decode(this.#slice(this.#start, this.#end))
  }

  get #start(): number {
    return Math.max(0, this.#end - this.#buffer.length)
  }

  #grow(wanted: number): void {
    if (wanted <= this.#buffer.length) return
    let size = Math.max(firstSize, this.#buffer.length)
    while (size < wanted) size *= 2
    const kept = this.#slice(this.#start, this.#end)
    const first = this.#end - kept.length
    this.#buffer = new Uint8Array(Math.min(size, this.#capacity))
    const at = first % this.#buffer.length
    const head = Math.min(kept.length, this.#buffer.length - at)
    this.#buffer.set(kept.subarray(0, head), at)
    this.#buffer.set(kept.subarray(head), 0)
  }

  #slice(from: number, to: number): Uint8Array {
    const size = this.#buffer.length
    const bytes = new Uint8Array(to - from)
    if (bytes.length === 0) return bytes
    const at = from % size
    const head = Math.min(bytes.length, size - at)
    bytes.set(this.#buffer.subarray(at, at + head))
    bytes.set(this.#buffer.subarray(0, bytes.length - head), head)
    return bytes
  }

  #tail(lines: number): number {
    const kept = this.#slice(this.#start, this.#end)
    if (lines === 0) return this.#end
    let left = lines
    for (let i = kept.length - 2; i >= 0; i--) {
      if (kept[i] === newline && --left === 0) return this.#start + i + 1
    }
    return this.#start
  }

  #more(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      this.#waiting.add(wake)
      signal?.addEventListener('abort', wake)
    })
  }
}
