/** Answers that may be kept: as many and as large as there is room for, the oldest go first. */
import { aged, readLifetime } from './message.ts'

const longestLifetime = 3_600
const mostEntries = 10_000
const mostBytes = 16 << 20

/** An answer that is kept. Times in seconds. */
export interface Kept {
  readonly answer: Buffer
  readonly since: number
  readonly until: number
  /** The answer as it is at an age in whole seconds: made once a second, not once a question. */
  shown: { readonly age: number; readonly bytes: Buffer }
}

/** Answers by what was asked. */
export class Cache {
  readonly #kept = new Map<string, Kept>()
  #bytes = 0

  get(key: string, now: number): Kept | undefined {
    const kept = this.#kept.get(key)
    if (!kept || kept.until > now) return kept
    this.#drop(key, kept)
    return undefined
  }

  /** Keeps an answer for as long as it says; one that must not be kept is not. Throws DecodeError when it does not read to its end. */
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

/** A kept answer as it is now: its lifetimes less by its age. Not to be changed. */
export function shownAt(kept: Kept, now: number): Buffer {
  const age = Math.floor(now - kept.since)
  if (kept.shown.age !== age) kept.shown = { age, bytes: aged(kept.answer, 0, age) }
  return kept.shown.bytes
}
