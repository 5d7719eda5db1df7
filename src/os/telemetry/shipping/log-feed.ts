/**
 * The logs of this node for one destination. A position is an absolute offset in each log. What memory no longer has is read from the
 * disk; what neither has is counted and left out.
 */

import type { LogRing } from '../../../supervise/log-ring.ts'
import { pause } from '../../../timing/pause.ts'
import type { LogFiles } from '../../runtime/public.ts'
import type { Batch, Dropped, Feed } from './feed.ts'
import { serviceMessage } from './service-message.ts'

/** Bytes of a line that are sent; the rest is left out, and the message is marked. */
export const longestLine = 64 * 1024
const piece = 128 * 1024
/** Milliseconds in which lines are collected, so that a busy service costs few writes. */
const collectTime = 50
const newline = 10

/** Where lines come from, and what is sent with them. */
export interface LogSources {
  /** All logs of the node, by name. */
  logs(): Iterable<readonly [string, LogRing]>
  /** Calls back after each write to any of them, until the returned function is called. */
  subscribe(listener: () => void): () => void
  readonly files: Pick<LogFiles, 'read'>
  tags(): Readonly<Record<string, string>>
  now(): Date
  readonly dropped: Dropped
  /** Bytes of a message at most, where the protocol has a limit. */
  readonly longestMessage?: number
}

/** How far one log was read. */
interface Cursor {
  at: number
  /** The rest of a line that was cut is skipped. */
  skipping: boolean
}

/** The lines of all logs. */
export class LogFeed implements Feed {
  readonly #sources: LogSources
  readonly #delivered = new Map<string, Cursor>()
  /** What was last counted as lost. */
  readonly #lost = new Map<string, { from: number; to: number }>()

  constructor(sources: LogSources) {
    this.#sources = sources
  }

  get behind(): number {
    let bytes = 0
    for (const [id, ring] of this.#sources.logs()) bytes += ring.end - (this.#delivered.get(id)?.at ?? 0)
    return bytes
  }

  get positions(): Record<string, number> {
    return Object.fromEntries([...this.#delivered].map(([id, { at }]) => [id, at]))
  }

  async *batches(signal: AbortSignal): AsyncGenerator<Batch, void> {
    const read = new Map([...this.#delivered].map(([id, cursor]) => [id, { ...cursor }]))
    let changed = true
    let wake = () => {}
    const nudge = () => {
      changed = true
      wake()
    }
    const unsubscribe = this.#sources.subscribe(nudge)
    signal.addEventListener('abort', nudge)
    try {
      while (!signal.aborted) {
        if (!changed) {
          const { promise, resolve } = Promise.withResolvers<void>()
          wake = resolve
          await promise
          await pause(collectTime, signal)
        }
        changed = false
        // One batch of each log in turn, so that a busy log does not hold up the others.
        for (const [id, ring] of this.#sources.logs()) {
          const batch = this.#next(id, ring, read)
          if (!batch) continue
          changed = true
          if (signal.aborted) return
          if (batch.texts.length > 0) yield batch
        }
      }
    } finally {
      unsubscribe()
      signal.removeEventListener('abort', nudge)
    }
  }

  /** The next whole lines of a log; no texts when only the rest of a cut line was there. */
  #next(id: string, ring: LogRing, read: Map<string, Cursor>): Batch | undefined {
    const cursor = read.get(id) ?? { at: 0, skipping: false }
    read.set(id, cursor)
    if (cursor.at >= ring.end) return undefined
    const { at, bytes } = this.#bytes(id, ring, cursor.at)
    // What is left of the first line after a gap begins in its middle.
    const partial = at > cursor.at ? bytes.indexOf(newline) + 1 || bytes.length : 0
    if (at > cursor.at) {
      this.#lose(id, cursor.at, at + partial)
      Object.assign(cursor, { at: at + partial, skipping: partial === bytes.length && bytes.at(-1) !== newline })
    }
    const texts = this.#texts(id, cursor, bytes.subarray(partial))
    if (!texts && partial === 0) return undefined
    const reached = { ...cursor }
    const delivered = () => {
      this.#delivered.set(id, reached)
    }
    return { texts: texts ?? [], delivered }
  }

  /** Counts bytes as lost, each once: after a lost connection the same gap is met again. */
  #lose(id: string, from: number, to: number): void {
    const counted = this.#lost.get(id) ?? { from: 0, to: 0 }
    const again = Math.max(0, Math.min(to, counted.to) - Math.max(from, counted.from))
    this.#lost.set(id, { from, to })
    if (to - from > again) this.#sources.dropped(id, to - from - again, 'bytes')
  }

  /** Bytes from an offset on: of the disk while memory no longer has them, then of memory. */
  #bytes(id: string, ring: LogRing, from: number): { at: number; bytes: Buffer } {
    const pieces: Uint8Array[] = []
    let first: number | undefined
    let next = from
    let length = 0
    while (length < piece && next < ring.start) {
      const stored = this.#sources.files.read(id, next, piece - length)
      // A line goes on at the next place on the disk only if nothing is missing between.
      if (!stored || stored.bytes.length === 0 || (first !== undefined && stored.at !== next) || stored.at >= ring.start) break
      first ??= stored.at
      pieces.push(stored.bytes)
      length += stored.bytes.length
      next = stored.at + stored.bytes.length
    }
    if (first === undefined || (length < piece && next >= ring.start)) {
      first ??= Math.max(next, ring.start)
      pieces.push(ring.since(next, piece - length))
    }
    return { at: first, bytes: Buffer.concat(pieces) }
  }

  /** Messages of the whole lines in `bytes`, which begin at the cursor; moves the cursor. Undefined when there is no whole line. */
  #texts(id: string, cursor: Cursor, bytes: Buffer): string[] | undefined {
    const texts: string[] = []
    let at = 0
    while (at < bytes.length) {
      const found = bytes.indexOf(newline, at)
      const end = found < 0 ? bytes.length : found
      if (found < 0 && end - at < longestLine && !cursor.skipping) break
      if (!cursor.skipping && end > at) texts.push(this.#message(id, bytes.subarray(at, end)))
      cursor.skipping = found < 0
      at = found < 0 ? end : found + 1
    }
    if (at === 0) return undefined
    cursor.at += at
    return texts
  }

  #message(id: string, line: Buffer): string {
    const { tags, now, longestMessage = Number.POSITIVE_INFINITY } = this.#sources
    const write = (length: number) =>
      serviceMessage(line.toString('utf8', 0, length), { service: id, tags: tags(), now: now(), cut: length < line.length })
    let length = Math.min(line.length, longestLine)
    let text = write(length)
    // Escapes make a message longer than its line.
    while (longestMessage < Number.POSITIVE_INFINITY && length > 0 && Buffer.byteLength(text) > longestMessage) {
      length = Math.floor(length / 2)
      text = write(length)
    }
    return text
  }
}
