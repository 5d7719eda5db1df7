/**
 * Synchronizes a clock with time servers (RFC 5905): polls all of them, selects those that a majority agrees with, and slews the
 * clock to their time. The poll interval grows as long as the clock stays in step.
 *
 * A clock that is far off is stepped. Once it has been in step, that takes several rounds with the same result, since a single
 * far answer is more likely a network problem than the truth.
 */
import type { Logger } from '../../../cosi/log.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { ClockFilter } from './clock-filter.ts'
import { type Consensus, consensus } from './selection.ts'

/** A sample of a source. Seconds. */
export interface Reading {
  readonly offset: number
  readonly delay: number
  readonly leap: number
  readonly rootDelay: number
  readonly rootDispersion: number
}

/** A source of time. */
export interface Source {
  readonly name: string
  ask(signal: AbortSignal): Promise<Reading>
}

/** Thrown by a source that must not be polled for some time. */
export class LeaveAlone extends Error {
  constructor(
    message: string,
    /** Seconds. */
    readonly retryInterval: number,
  ) {
    super(message)
  }
}

/** The clock to discipline. */
export interface LedClock {
  /** Slews it; `poll` is the power of two of the seconds until the next update. */
  slew(correction: { offset: number; jitter: number; distance: number; leap: number; poll: number }): void
  /** Steps it. */
  step(offset: number): void
}

/** Monotonic time, in seconds. */
export interface SteadyTime {
  now(): number
  sleep(seconds: number, signal: AbortSignal): Promise<void>
}

/** Poll intervals as powers of two, in seconds. */
export const pollRange = { least: 5, most: 11 } as const
/** A clock that is farther off is stepped, not slewed; in seconds. */
export const slewLimit = 0.4

const retry = { first: 1, longest: 32 }
/** Number of rounds at the start, a second apart, so that the filters have samples to choose from. */
const burst = 4
/** Number of rounds that must agree before a clock that was in step is stepped. */
const confirmations = 4
/** RFC 5905 section 11.3: how stable the clock must be, and for how long, before the poll interval grows. */
const gate = 4
const countLimit = 30
/** An offset that exceeds the jitter by this factor is a spike. */
const popcorn = 3
const leastPopcorn = 0.005

interface PolledSource {
  readonly source: Source
  readonly filter: ClockFilter
  reading?: Reading | undefined
  skippedUntil: number
  problem: string
}

/** Receives the state of the synchronization. */
export interface Listener {
  /** The clock is synchronized; how far off it was, and whether it was stepped. */
  inStep(what: { offset: number; stepped: boolean }): void
  /** No source answers or no majority agrees; called without an error when that is over. */
  outOfReach(error?: unknown): void
}

export class Synchronizer {
  readonly #sources: PolledSource[]
  readonly #clock: LedClock
  readonly #time: SteadyTime
  readonly #log: Logger
  #poll: number = pollRange.least
  #count = 0
  #used = Number.NEGATIVE_INFINITY
  #last?: Consensus
  #spiked = false
  #suspicion = 0
  #rounds = 0
  #rejected = ''

  constructor(options: { sources: readonly Source[]; clock: LedClock; time: SteadyTime; log: Logger }) {
    this.#sources = options.sources.map((source) => ({
      source,
      filter: new ClockFilter(),
      skippedUntil: Number.NEGATIVE_INFINITY,
      problem: '',
    }))
    this.#clock = options.clock
    this.#time = options.time
    this.#log = options.log
  }

  async run(listener: Listener, signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      await this.#pollAll(signal)
      if (signal.aborted) return
      const found = this.#consensus()
      if (!found) {
        listener.outOfReach(new Error(this.#trouble()))
        await this.#time.sleep(Math.min(retry.longest, retry.first * 2 ** failures++), signal)
        continue
      }
      failures = 0
      this.#rounds++
      const stepped = this.#correct(found)
      if (stepped !== undefined) listener.inStep({ offset: found.offset, stepped })
      const hurried = this.#rounds < burst || this.#suspicion > 0
      await this.#time.sleep(hurried ? retry.first : 2 ** this.#poll, signal)
    }
  }

  #trouble(): string {
    const problems = this.#sources.flatMap(({ problem }) => (problem === '' ? [] : [problem]))
    return problems.length > 0 ? problems.join('; ') : 'the time servers disagree'
  }

  async #pollAll(signal: AbortSignal): Promise<void> {
    const due = this.#sources.filter(({ skippedUntil }) => skippedUntil <= this.#time.now())
    await Promise.all(
      due.map(async (polled) => {
        try {
          const reading = await polled.source.ask(signal)
          polled.reading = reading
          polled.filter.add({ offset: reading.offset, delay: reading.delay, at: this.#time.now() })
          polled.problem = ''
        } catch (error) {
          if (signal.aborted) return
          polled.reading = undefined
          const problem = messageOf(error)
          if (error instanceof LeaveAlone) polled.skippedUntil = this.#time.now() + error.retryInterval
          if (problem !== polled.problem) this.#log.warn('time server failed', { server: polled.source.name, error: problem })
          polled.problem = problem
        }
      }),
    )
  }

  #consensus(): (Consensus & { at: number }) | undefined {
    const now = this.#time.now()
    let latest = Number.NEGATIVE_INFINITY
    const candidates = this.#sources.flatMap(({ source, filter, reading }) => {
      const estimate = reading && filter.estimate(now)
      if (!estimate) return []
      latest = Math.max(latest, estimate.at)
      const { offset, delay, dispersion, jitter } = estimate
      const { leap, rootDelay, rootDispersion } = reading
      // RFC 5905 appendix A.5.5.2; the distance is at least MINDISP
      const distance = Math.max(0.005, (rootDelay + delay) / 2 + rootDispersion + dispersion + jitter)
      return [{ server: source.name, offset, distance, jitter, leap }]
    })
    const found = consensus(candidates)
    if (!found) {
      if (candidates.length > 0)
        this.#reportRejected(
          candidates.map(({ server }) => server),
          'time servers disagree, none selected',
        )
      return undefined
    }
    if (found.disbelieved.length > 0) this.#reportRejected(found.disbelieved, 'time server rejected, the others agree')
    else this.#rejected = ''
    return { ...found, at: latest }
  }

  #reportRejected(servers: readonly string[], message: string): void {
    const key = servers.join(' ')
    if (key !== this.#rejected) this.#log.warn(message, { servers: key })
    this.#rejected = key
  }

  /** Whether the clock was stepped (true), slewed (false), or left alone (undefined). */
  #correct(found: Consensus & { at: number }): boolean | undefined {
    if (found.at <= this.#used) return undefined // no new sample since the last correction
    if (Math.abs(found.offset) > slewLimit) return this.#far(found)
    this.#suspicion = 0
    if (this.#rounds < burst) return false // near enough to begin with; it is slewed once the filters have samples
    const before = this.#last
    const isSpike = before !== undefined && Math.abs(found.offset - before.offset) > Math.max(leastPopcorn, popcorn * before.jitter)
    if (isSpike && !this.#spiked) {
      this.#spiked = true
      this.#log.debug('offset spike ignored', { offset: found.offset })
      return undefined
    }
    this.#spiked = false
    this.#used = found.at
    this.#last = found
    this.#adaptPoll(found)
    const { offset, jitter, distance, leap } = found
    this.#clock.slew({ offset, jitter, distance, leap, poll: this.#poll })
    // The slew is complete by the next round, so earlier samples are shifted by it.
    for (const { filter } of this.#sources) filter.shift(offset)
    return false
  }

  #far(found: Consensus): boolean | undefined {
    if (this.#last !== undefined && ++this.#suspicion < confirmations) {
      // Only samples from now on count.
      if (this.#suspicion === 1) for (const { filter } of this.#sources) filter.clear()
      return undefined
    }
    this.#suspicion = 0
    this.#clock.step(found.offset)
    this.#log.info('clock stepped', { seconds: found.offset, servers: found.believed.join(', ') })
    for (const { filter } of this.#sources) filter.clear()
    this.#poll = pollRange.least
    this.#count = 0
    this.#rounds = 1
    this.#last = { ...found, offset: 0 }
    this.#used = this.#time.now()
    return true
  }

  #adaptPoll({ offset, jitter }: Consensus): void {
    const steady = Math.abs(offset) < gate * jitter
    this.#count = steady ? this.#count + this.#poll : this.#count - 2 * this.#poll
    if (this.#count > countLimit) {
      this.#count = 0
      this.#poll = Math.min(pollRange.most, this.#poll + 1)
    } else if (this.#count < -countLimit) {
      this.#count = 0
      this.#poll = Math.max(pollRange.least, this.#poll - 1)
    }
  }
}
