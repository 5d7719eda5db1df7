import type { Clock } from './clock.ts'
import type { Task } from './controller.ts'
import { nextTrouble, type Trouble } from './controller-state.ts'
import type { Logger } from './log.ts'

/** The longest delay before a failed round or task runs again, in milliseconds. */
export const longestPause = 60_000

/** The background tasks of a controller by key. One that ended runs again when a round names its key again. */
export class BackgroundTasks {
  readonly #running = new Map<string, { abort: AbortController; done: boolean }>()

  constructor(
    readonly troubles: Map<string, Trouble>,
    readonly context: { clock: Clock; firstPause: number; log: Logger; wake: () => void },
  ) {}

  /** Starts a task unless it runs already. */
  run(key: string, name: string, task: Task): void {
    const running = this.#running.get(key)
    if (running && !running.done) return
    const { troubles } = this
    const { clock, firstPause, log, wake } = this.context
    const abort = new AbortController()
    const entry = { abort, done: false }
    this.#running.set(key, entry)
    const report = (error?: unknown) => {
      if (abort.signal.aborted) return
      if (error === undefined) troubles.delete(key)
      else troubles.set(key, { ...nextTrouble(troubles.get(key), error, clock), task: name })
    }
    const run = async () => task(abort.signal, wake, report)
    run()
      .then(() => report())
      .catch((error) => {
        if (abort.signal.aborted) return
        const trouble = { ...nextTrouble(troubles.get(key), error, clock), task: name }
        troubles.set(key, trouble)
        const { message, inRow } = trouble
        log.warn('background task failed', { task: name, error: message })
        setTimeout(wake, Math.min(longestPause, firstPause * 2 ** Math.min(8, inRow)))
      })
      .finally(() => {
        entry.done = true
      })
  }

  /** Aborts the tasks that the last round did not name. */
  retain(named: ReadonlySet<string>): void {
    for (const [key, { abort }] of this.#running) {
      if (named.has(key)) continue
      this.#running.delete(key)
      this.troubles.delete(key)
      abort.abort(new Error('no longer wanted'))
    }
  }

  /** Aborts all tasks. */
  stop(reason: unknown): void {
    for (const { abort } of this.#running.values()) abort.abort(reason)
  }
}
