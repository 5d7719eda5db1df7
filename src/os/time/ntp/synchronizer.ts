/**
 * Keeps a clock in step with time servers (RFC 5905): asks all of them, believes those that most agree with, and has the
 * clock led to what they say; asks less and less often as long as it stays there.
 *
 * A clock that is far off is set; once it has been right, that takes several rounds that say the same, since a lone far
 * answer is more likely a mishap on the way than the truth.
 */
import type { Logger } from '../../../cosi/log.ts'
import { ClockFilter } from './clock-filter.ts'
import { type Consensus, consensus } from './selection.ts'

/** What a source said. Seconds. */
export interface Reading {
  readonly offset: number
  readonly delay: number
  readonly leap: number
  readonly rootDelay: number
  readonly rootDispersion: number
}

/** Somebody to ask. */
export interface Source {
  readonly name: string
  ask(signal: AbortSignal): Promise<Reading>
}

/** A source that wants to be asked less, or not at all. */
export class LeaveAlone extends Error {
  constructor(
    message: string,
    /** Seconds. */
    readonly rest: number,
  ) {
    super(message)
  }
}

/** The clock that is led. */
export interface LedClock {
  /** Leads it over time; `poll` is the power of two of the seconds until the next word. */
  slew(correction: { offset: number; jitter: number; distance: number; leap: number; poll: number }): void
  /** Sets it. */
  step(offset: number): void
}

/** Time that never jumps, in seconds. */
export interface SteadyTime {
  now(): number
  sleep(seconds: number, signal: AbortSignal): Promise<void>
}

/** Powers of two of the seconds between rounds. */
export const pollRange = { least: 5, most: 11 } as const
/** Farther off than this, a clock is set, not led; in seconds. */
export const slewLimit = 0.4

const retry = { first: 1, longest: 32 }
/** Rounds right after the beginning, a second apart, so that filters have something to choose from. */
const burst = 4
/** Rounds that must say the same before a clock that was right is set. */
const confirmations = 4
/** RFC 5905 section 11.3: how steady it must be, and for how long, before it is asked less often. */
const gate = 4
const countLimit = 30
/** How often an offset sticks out of the jitter before it is taken for a mishap. */
const popcorn = 3
const leastPopcorn = 0.005

interface Asked {
  readonly source: Source
  readonly filter: ClockFilter
  reading?: Reading
  silentUntil: number
  problem: string
}

/** Who hears how it goes. */
export interface Listener {
  /** The clock is as right as the sources can tell; how far off it was, and whether it was set for that. */
  inStep(what: { offset: number; stepped: boolean }): void
  /** Nobody tells the time, or no majority agrees; without an error when that is over. */
  outOfReach(error?: unknown): void
}

export class Synchronizer {
  readonly #asked: Asked[]
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
  #disbelieved = ''

  constructor(options: { sources: readonly Source[]; clock: LedClock; time: SteadyTime; log: Logger }) {
    this.#asked = options.sources.map((source) => ({
      source,
      filter: new ClockFilter(),
      silentUntil: Number.NEGATIVE_INFINITY,
      problem: '',
    }))
    this.#clock = options.clock
    this.#time = options.time
    this.#log = options.log
  }

  async run(listener: Listener, signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      await this.#askAll(signal)
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
    const said = this.#asked.flatMap(({ problem }) => (problem === '' ? [] : [problem]))
    return said.length > 0 ? said.join('; ') : 'the time servers disagree'
  }

  async #askAll(signal: AbortSignal): Promise<void> {
    const due = this.#asked.filter(({ silentUntil }) => silentUntil <= this.#time.now())
    await Promise.all(
      due.map(async (asked) => {
        try {
          const reading = await asked.source.ask(signal)
          asked.reading = reading
          asked.filter.add({ offset: reading.offset, delay: reading.delay, at: this.#time.now() })
          asked.problem = ''
        } catch (error) {
          if (signal.aborted) return
          asked.reading = undefined
          const said = error instanceof Error ? error.message : String(error)
          if (error instanceof LeaveAlone) asked.silentUntil = this.#time.now() + error.rest
          if (said !== asked.problem) this.#log.warn('a time server does not tell the time', { server: asked.source.name, reason: said })
          asked.problem = said
        }
      }),
    )
  }

  #consensus(): (Consensus & { at: number }) | undefined {
    const now = this.#time.now()
    let latest = Number.NEGATIVE_INFINITY
    const candidates = this.#asked.flatMap(({ source, filter, reading }) => {
      const estimate = reading && filter.estimate(now)
      if (!estimate) return []
      latest = Math.max(latest, estimate.at)
      const { offset, delay, dispersion, jitter } = estimate
      const { leap, rootDelay, rootDispersion } = reading
      // RFC 5905 appendix A.5.5.2; nearer than its MINDISP nobody can claim to be
      const distance = Math.max(0.005, (rootDelay + delay) / 2 + rootDispersion + dispersion + jitter)
      return [{ server: source.name, offset, distance, jitter, leap }]
    })
    const found = consensus(candidates)
    if (!found) {
      if (candidates.length > 0)
        this.#tellDisbelieved(
          candidates.map(({ server }) => server),
          'the time servers disagree, none is believed',
        )
      return undefined
    }
    if (found.disbelieved.length > 0) this.#tellDisbelieved(found.disbelieved, 'a time server is not believed, the others agree')
    else this.#disbelieved = ''
    return { ...found, at: latest }
  }

  #tellDisbelieved(servers: readonly string[], message: string): void {
    const key = servers.join(' ')
    if (key !== this.#disbelieved) this.#log.warn(message, { servers: key })
    this.#disbelieved = key
  }

  /** Whether the clock was set (true), led (false), or left alone (undefined). */
  #correct(found: Consensus & { at: number }): boolean | undefined {
    if (found.at <= this.#used) return undefined // nothing that was not acted upon already
    if (Math.abs(found.offset) > slewLimit) return this.#far(found)
    this.#suspicion = 0
    if (this.#rounds < burst) return false // near enough to begin with; it is led once there is something to choose from
    const before = this.#last
    const sticksOut = before !== undefined && Math.abs(found.offset - before.offset) > Math.max(leastPopcorn, popcorn * before.jitter)
    if (sticksOut && !this.#spiked) {
      this.#spiked = true
      this.#log.debug('an offset sticks out, it is passed over', { offset: found.offset })
      return undefined
    }
    this.#spiked = false
    this.#used = found.at
    this.#last = found
    this.#adaptPoll(found)
    const { offset, jitter, distance, leap } = found
    this.#clock.slew({ offset, jitter, distance, leap, poll: this.#poll })
    // By the next round it has got there: what was measured before is seen from there.
    for (const { filter } of this.#asked) filter.shift(offset)
    return false
  }

  #far(found: Consensus): boolean | undefined {
    if (this.#last !== undefined && ++this.#suspicion < confirmations) {
      // Only what is said from now on counts.
      if (this.#suspicion === 1) for (const { filter } of this.#asked) filter.clear()
      return undefined
    }
    this.#suspicion = 0
    this.#clock.step(found.offset)
    this.#log.info('the clock was set', { seconds: found.offset, servers: found.believed.join(', ') })
    for (const { filter } of this.#asked) filter.clear()
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
