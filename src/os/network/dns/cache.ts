/** Answer cache, bounded in entries and bytes. The oldest entries are evicted first. */
import { aged, readLifetime } from './message.ts'

const longestLifetime = 3_600
const mostEntries = 10_000
const mostBytes = 16 << 20

/** A cached answer. Times in seconds. */
export interface Kept {
  readonly answer: Buffer
  readonly since: number
  readonly until: number
  /** The answer with its TTLs reduced by `age` whole seconds: rebuilt at most once a second, not for each query. */
  shown: { readonly age: number; readonly bytes: Buffer }
}

/** Cached answers by question. */
export class Cache {
  readonly #kept = new Map<string, Kept>()
  #bytes = 0

  get(key: string, now: number): Kept | undefined {
    const kept = this.#kept.get(key)
    if (!kept || kept.until > now) return kept
    this.#drop(key, kept)
    return undefined
  }

  /** Caches an answer for its TTL. An uncacheable answer is ignored. Throws DecodeError if it does not parse to its end. */
  put(key: string, received: Buffer, now: number): void {
    const answer = aged(received, 0, 0)
    const lifetime = Math.min(longestLifetime, readLifetime(answer))
    if (lifetime <= 0) return
    const before = this.#kept.get(key)
    if (before) this.#drop(key, before)
    this.#kept.set(key, { answer, since: now, until: now + lifetime, shown: { age: 0, bytes: answer } })
    this.#bytes += answer.length
    for (const [oldest, kept] of this.#kept) {
      if (this.#kept.size <= mostEntries && this.#bytes <= mostBytes) break
      this.#drop(oldest, kept)
    }
  }

  clear(): void {
    this.#kept.clear()
    this.#bytes = 0
  }

  #drop(key: string, { answer }: Kept): void {
    this.#kept.delete(key)
    this.#bytes -= answer.length
  }
}

/** A cached answer with its TTLs reduced by its age. The result is shared and must not be modified. */
export function shownAt(kept: Kept, now: number): Buffer {
  const age = Math.floor(now - kept.since)
  if (kept.shown.age !== age) kept.shown = { age, bytes: aged(kept.answer, 0, age) }
  return kept.shown.bytes
}
