import { type Clock, type Deadline, makeClock } from '../../src/cosi/clock.ts'
import type { Exit, Run, Runner } from '../../src/supervise/definition.ts'

/** A clock that stands still until it is moved. */
export class ManualClock implements Clock {
  #time = Date.UTC(2026, 0, 1)
  /** What steps added to the wall clock. */
  #stepped = 0
  readonly #sleepers = new Set<{ at: number; wake: () => void }>()

  now(): Date {
    return new Date(this.#time + this.#stepped)
  }

  elapsed(): number {
    return this.#time
  }

  deadline(limit: number): Deadline {
    return makeClock({ elapsed: () => this.#time }).deadline(limit)
  }

  /** Steps the wall clock; time itself goes on as before. */
  step(ms: number): void {
    this.#stepped += ms
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const sleeper = { at: this.#time + ms, wake: () => {} }
      sleeper.wake = () => {
        this.#sleepers.delete(sleeper)
        signal?.removeEventListener('abort', sleeper.wake)
        resolve()
      }
      signal?.addEventListener('abort', sleeper.wake)
      if (signal?.aborted) resolve()
      else this.#sleepers.add(sleeper)
    })
  }

  /** Moves time on, waking sleepers in order and letting everything that follows happen. */
  async advance(ms: number): Promise<void> {
    const end = this.#time + ms
    await settle()
    for (;;) {
      const [first] = [...this.#sleepers].sort((a, b) => a.at - b.at)
      if (!first || first.at > end) break
      this.#time = first.at
      first.wake()
      await settle()
    }
    this.#time = end
  }
}

/** Lets every promise that can be settled be settled. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve()
}

/** A process whose end is written by the test. */
export class ScriptedProcess implements Run {
  readonly description = 'started'
  readonly signals: string[] = []
  readonly exit: Promise<Exit>
  readonly #end: (exit: Exit) => void
  readonly #heeds: readonly string[]

  constructor(
    readonly pid: number,
    heeds: readonly string[],
  ) {
    const { promise, resolve } = Promise.withResolvers<Exit>()
    this.exit = promise
    this.#end = resolve
    this.#heeds = heeds
  }

  kill(signal: string): void {
    this.signals.push(signal)
    if (this.#heeds.includes(signal)) this.#end({ ok: false, message: `killed by ${signal}` })
  }

  end(ok: boolean, message: string): void {
    this.#end({ ok, message })
  }
}

/** A runner that starts scripted processes and keeps them for the test. */
export function scripted(heeds: readonly string[] = ['SIGTERM', 'SIGKILL']): { runner: Runner; runs: ScriptedProcess[] } {
  const runs: ScriptedProcess[] = []
  return {
    runs,
    runner: async () => {
      const run = new ScriptedProcess(100 + runs.length, heeds)
      runs.push(run)
      return run
    },
  }
}
