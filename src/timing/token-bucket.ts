/** Tokens per second, and the most that are kept: how many may be taken at once after a quiet period. */
export interface TokenRate {
  readonly rate: number
  readonly burst: number
}

/** A token bucket, full at first. Times are milliseconds of a monotonic clock. */
export class TokenBucket {
  readonly #size: TokenRate
  #tokens: number
  #since: number

  constructor(size: TokenRate, now = performance.now()) {
    this.#size = size
    this.#tokens = size.burst
    this.#since = now
  }

  /** Takes one token; false without one. */
  take(now = performance.now()): boolean {
    if (this.tokens(now) < 1) return false
    this.#tokens--
    return true
  }

  /** Takes tokens whether they are there or not: a debt has to be refilled before there is one again. Returns what is left. */
  spend(count: number, now = performance.now()): number {
    this.tokens(now)
    this.#tokens -= count
    return this.#tokens
  }

  /** The tokens that are there; negative for a debt. */
  tokens(now = performance.now()): number {
    this.#tokens = Math.min(this.#size.burst, this.#tokens + ((now - this.#since) / 1000) * this.#size.rate)
    this.#since = now
    return this.#tokens
  }

  /** Whether it is as if never used. */
  full(now = performance.now()): boolean {
    return this.tokens(now) === this.#size.burst
  }
}
