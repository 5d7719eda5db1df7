/**
 * A simulation of clocks: true time, a local clock that drifts and is disciplined by the kernel's loop as kernel/time/ntp.c
 * does it (second_overflow, ntp_update_offset), and servers with errors and delays.
 */
import type { LedClock, Reading, Source, SteadyTime } from '../../../../src/os/time/ntp/synchronizer.ts'

/** Pseudo-random numbers from a fixed seed. */
export function chance(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

export class World implements SteadyTime, LedClock {
  /** True seconds since the start. */
  t = 0
  /** The local clock minus the true time, and its drift in seconds per second. */
  error: number
  readonly drift: number
  readonly corrections: string[] = []
  /** Aborted when the end is reached. */
  readonly abort = new AbortController()
  readonly #end: number
  #left = 0
  #frequency = 0
  #reference = 0
  #constant = 1
  readonly polls: number[] = []
  leap = 0

  constructor({ error = 0, drift = 0, end = 3600 }) {
    this.error = error
    this.drift = drift
    this.#end = end
  }

  now = () => this.t

  async sleep(seconds: number): Promise<void> {
    const until = this.t + seconds
    while (this.t < until) {
      const step = Math.min(1, until - this.t)
      const part = (this.#left / 2 ** (2 + this.#constant)) * step
      this.#left -= part
      this.error += part + (this.drift + this.#frequency) * step
      this.t += step
    }
    if (this.t >= this.#end) this.abort.abort()
  }

  slew({ offset, poll, leap }: Parameters<LedClock['slew']>[0]): void {
    this.corrections.push(`slew ${Math.round(offset * 1e3)}ms`)
    this.polls.push(poll)
    this.leap = leap
    this.#constant = Math.max(0, poll - 4)
    this.#left = offset
    const seconds = Math.min(this.t - this.#reference, 2 ** (2 + this.#constant + 1))
    this.#reference = this.t
    this.#frequency += (offset * seconds) / 2 ** (2 * (2 + 2 + this.#constant))
    this.#frequency = Math.max(-500e-6, Math.min(500e-6, this.#frequency))
  }

  step(offset: number): void {
    this.corrections.push(`step ${Math.round(offset * 1e3)}ms`)
    this.error += offset
    this.#left = 0
  }

  /** A server: the offset of its clock, its round-trip time, its noise, and a function that alters its answers. */
  server(name: string, { off = 0, way = 0.02, noise = 0.001, seed = 1, alter = (reading: Reading) => reading } = {}): Source {
    const random = chance(seed)
    return {
      name,
      ask: async () => {
        // Queues make an answer late, which shifts its offset by half of the delay.
        const late = noise * -Math.log(1 - random())
        const delay = way + late
        const offset = off - this.error + (random() < 0.5 ? -1 : 1) * (late / 2)
        return alter({ offset, delay, leap: 0, rootDelay: 0.005, rootDispersion: 0.002 })
      },
    }
  }
}
