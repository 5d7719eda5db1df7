/**
 * Runs controllers concurrently, one round at a time for each. A change of an input marks its readers as due; one round
 * handles all changes that came before it started. A round that throws changes nothing and is retried with increasing
 * delay.
 */

import { type Clock, systemClock } from './clock.ts'
import type { Controller, Output } from './controller.ts'
import type { ControllerState } from './controller-state.ts'
import { StoreError } from './errors.ts'
import type { Logger } from './log.ts'
import { Runner } from './runner.ts'
import type { Store } from './store.ts'

const usualFirstPause = 250

/** The controllers of a machine over its store. */
export class Runtime {
  readonly clock: Clock
  /** Milliseconds from the first failure to the first retry; doubled by each further failure. */
  readonly firstPause: number
  /** The wall clock, for time stamps. */
  readonly now: () => Date
  readonly #runners = new Map<string, Runner>()
  readonly #log: Logger
  #resting: (() => void)[] = []
  readonly #listeners: ((controller: string, took: number) => void)[] = []
  #started = false

  constructor(
    readonly store: Store,
    options: { log: Logger; clock?: Clock | undefined; firstPause?: number | undefined },
  ) {
    this.#log = options.log
    this.clock = options.clock ?? systemClock
    this.now = this.clock.now
    this.firstPause = options.firstPause ?? usualFirstPause
  }

  /** Adds controllers. Throws StoreError 'owner' when two would own one type, 'exists' when a name is taken. */
  register(...controllers: readonly Controller[]): void {
    for (const controller of controllers) {
      if (this.#runners.has(controller.name)) throw new StoreError('exists', `controller "${controller.name}" is registered twice`)
      for (const output of Object.values<Output>(controller.outputs)) this.#claim(controller, output)
      const runner = new Runner(controller, this, this.#log.with({ controller: controller.name }))
      this.#runners.set(controller.name, runner)
      if (this.#started) runner.start()
    }
  }

  #claim(controller: Controller, output: Output): void {
    for (const { controller: other } of this.#runners.values())
      for (const theirs of Object.values<Output>(other.outputs)) {
        const same = theirs.type.type === output.type.type && theirs.namespace === output.namespace
        if (same && (theirs.kind === 'exclusive' || output.kind === 'exclusive'))
          throw new StoreError(
            'owner',
            `controllers "${other.name}" and "${controller.name}" both write "${output.namespace}/${output.type.type}", one of them as its only owner`,
          )
      }
  }

  /** Calls back after each round with its controller and how long it took, in milliseconds. */
  onRound(listener: (controller: string, took: number) => void): void {
    this.#listeners.push(listener)
  }

  /** Counts a round of a controller. */
  ended(state: ControllerState, took: number): void {
    state.spent += took
    for (const listener of this.#listeners) listener(state.name, took)
  }

  start(): void {
    this.#started = true
    for (const runner of this.#runners.values()) runner.start()
  }

  stop(): void {
    for (const runner of this.#runners.values()) runner.stop()
  }

  /** All controllers, for the dependency graph and for diagnosis. */
  controllers(): { controller: Controller; state: ControllerState }[] {
    return [...this.#runners.values()].map(({ controller, state }) => ({ controller, state }))
  }

  /** Resolves when no controller is due or running; controllers that wait for a timer do not count. */
  async settled(): Promise<void> {
    while ([...this.#runners.values()].some(({ state }) => state.running || state.due)) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#resting.push(resolve)
      await promise
    }
  }

  rested(): void {
    const waiting = this.#resting
    this.#resting = []
    for (const resolve of waiting) resolve()
  }
}
