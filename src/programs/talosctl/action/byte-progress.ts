import type { Io } from '../io.ts'
import { humanSize } from '../output/units.ts'

/** How far a transfer is, how quick, and how long it still takes, on stderr where that is a terminal. */
export class ByteProgress {
  readonly #started = performance.now()
  #lastUpdate = 0
  #shown = false

  constructor(
    readonly io: Io,
    readonly what: string,
    /** Bytes there will be, where that is known. */
    readonly total?: number,
  ) {}

  /** Reports how many bytes are done. */
  at(bytes: number): void {
    const passed = performance.now() - this.#started
    if (!this.io.stderr.isTTY || passed - this.#lastUpdate < 200) return
    this.#lastUpdate = passed
    this.#shown = true
    this.io.stderr.write(`\r\u001b[K${this.what}: ${rate(bytes, passed, this.total)}`)
  }

  /** Takes the line away. */
  end(): void {
    if (this.#shown) this.io.stderr.write('\r\u001b[K')
    this.#shown = false
  }
}

/** "12 MB of 40 MB at 3.1 MB/s, 9 s left"; what is not known is left out. */
export function rate(bytes: number, milliseconds: number, total?: number): string {
  const perSecond = milliseconds > 0 ? (bytes * 1000) / milliseconds : 0
  const done = total ? `${humanSize(bytes)} of ${humanSize(total)}` : humanSize(bytes)
  const left = total && perSecond > 0 ? `, ${Math.ceil(Math.max(0, total - bytes) / perSecond)} s left` : ''
  return `${done} at ${humanSize(Math.round(perSecond))}/s${left}`
}

/** Writes bytes to standard output as fast as they are taken; with progress where that goes elsewhere than to the terminal. */
export async function writeBytes(io: Io, chunks: AsyncIterable<Uint8Array>, what: string): Promise<void> {
  const progress = new ByteProgress(io, what)
  let bytes = 0
  try {
    for await (const chunk of chunks) {
      io.stdout.write(chunk)
      await io.stdout.drained()
      bytes += chunk.length
      if (!io.stdout.isTTY) progress.at(bytes)
    }
  } finally {
    progress.end()
  }
}
