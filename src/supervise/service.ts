/** One service living through the states of state.ts. */

import type { Store } from '../cosi/store.ts'
import type { Clock } from './clock.ts'
import { watchCondition } from './condition.ts'
import { type Exit, type Life, type Run, type ServiceDefinition, Skip } from './definition.ts'
import { type Health, watchHealth } from './health.ts'
import type { LogRing } from './log-ring.ts'
import { isDown, next, type State, type Step } from './state.ts'

/** Something that happened to a service. */
export interface ServiceEvent {
  readonly id: string
  readonly state: State
  readonly message: string
  readonly time: Date
  readonly health: Health
}

/** A service as it stands now; events are oldest first. */
export interface ServiceSnapshot {
  readonly id: string
  readonly state: State
  readonly health: Health
  readonly pid?: number
  readonly events: readonly ServiceEvent[]
}

/** What a service needs from its supervisor. */
export interface Surroundings {
  readonly store: Store
  readonly clock: Clock
  readonly output: LogRing
  /** The lowest OOM score that may be set. */
  readonly oomFloor: number
  /** Of the services in `ids`, those that are not up. */
  notUp(ids: readonly string[]): string[]
  told(event: ServiceEvent): void
}

/** Milliseconds between a run's end and the next attempt. */
export const restartInterval = 5000
const defaultStopTimeout = 10_000
const killTimeout = 10_000
const eventsKept = 64

export class Service {
  readonly #around: Surroundings
  #definition: ServiceDefinition
  #state: State = 'Initialized'
  #health: Health
  #run: Run | undefined
  #stopping: AbortController | undefined
  #ended: Promise<void> = Promise.resolve()
  #wake = () => {}
  readonly #events: ServiceEvent[] = []

  constructor(definition: ServiceDefinition, around: Surroundings) {
    this.#definition = definition
    this.#around = around
    this.#health = unknown(around.clock.now())
  }

  get definition(): ServiceDefinition {
    return this.#definition
  }

  get state(): State {
    return this.#state
  }

  /** Running, and well if its health is watched. */
  get isUp(): boolean {
    return this.#state === 'Running' && (!this.#definition.health || this.#health.healthy)
  }

  snapshot(): ServiceSnapshot {
    return { id: this.#definition.id, state: this.#state, health: this.#health, pid: this.#run?.pid, events: [...this.#events] }
  }

  /** Takes a new description; one that runs keeps its old one until it has ended. */
  redefine(definition: ServiceDefinition): void {
    this.#definition = definition
  }

  /** Asks it to run; does nothing while it lives. */
  start(): void {
    if (!isDown(this.#state)) return
    const stopping = new AbortController()
    this.#stopping = stopping
    this.#move('start', 'Starting service')
    this.#ended = this.#live(this.#definition, stopping.signal)
  }

  /** Asks it to end and waits until it has. */
  async stop(): Promise<void> {
    if (!isDown(this.#state) && !this.#stopping?.signal.aborted) {
      this.#move('stop', this.#run ? 'Sending SIGTERM' : 'Stopping service')
      this.#stopping?.abort()
    }
    await this.#ended
  }

  /** Looks at the conditions again; called when another service has changed. */
  wake(): void {
    this.#wake()
  }

  async #live(definition: ServiceDefinition, signal: AbortSignal): Promise<void> {
    const { oom } = definition
    const { oomFloor } = this.#around
    const life: Life = {
      definition,
      oom: oom === undefined ? undefined : Math.max(oom, oomFloor),
      store: this.#around.store,
      output: this.#around.output,
      clock: this.#around.clock,
      signal,
      note: (message) => this.#tell(message),
    }
    if (oom !== undefined && oom < oomFloor) this.#tell(`OOM score ${oom} may not be set here, ${oomFloor} is used`)
    for (;;) {
      const exit = await this.#attempt(life)
      if (signal.aborted) return this.#move(exit.ok ? 'finish' : 'fail', exit.ok ? 'Service stopped' : exit.message)
      if (this.#state === 'Skipped') return
      if (definition.restart === 'never' || (definition.restart === 'untilSuccess' && exit.ok)) return this.#over(exit)
      this.#move('retry', `${exit.message}, starting again in ${restartInterval / 1000}s`)
      await this.#around.clock.sleep(restartInterval, signal)
    }
  }

  /** Once through conditions, preparation and a run. A stop on the way is a good end. */
  async #attempt(life: Life): Promise<Exit> {
    const stopped: Exit = { ok: true, message: 'stopped' }
    try {
      if (!(await this.#conditions(life))) return stopped
      this.#move('prepare', 'Running pre state')
      await life.definition.prepare?.(life)
      if (life.signal.aborted) return stopped
      this.#move('prepare', 'Creating service runner')
      this.#run = await life.definition.runner(life)
    } catch (error) {
      if (life.signal.aborted) return stopped
      if (error instanceof Skip) {
        this.#move('skip', `Service skipped: ${error.message}`)
        return stopped
      }
      return { ok: false, message: error instanceof Error ? error.message : String(error) }
    }
    return this.#watch(life, this.#run)
  }

  /** Waits until nothing is missing; false when the service was stopped meanwhile. */
  async #conditions({ definition, signal }: Life): Promise<boolean> {
    let changed = Promise.withResolvers<void>()
    const wake = () => changed.resolve()
    const watch = watchCondition(this.#around.store, (view) => definition.wait?.(view) ?? [], wake)
    signal.addEventListener('abort', wake)
    this.#wake = wake
    try {
      let last = ''
      while (!signal.aborted) {
        changed = Promise.withResolvers()
        const services = this.#around.notUp(definition.dependsOn).map((id) => `service "${id}" to be "up"`)
        const missing = [...services, ...watch.unmet()].join(', ')
        if (missing === '') return true
        if (missing !== last) this.#move('wait', `Waiting for ${missing}`)
        last = missing
        await changed.promise
      }
      return false
    } finally {
      this.#wake = () => {}
      signal.removeEventListener('abort', wake)
      watch.close()
    }
  }

  /** From a run's start to its end, by itself or by stop. */
  async #watch({ definition, signal, clock }: Life, run: Run): Promise<Exit> {
    this.#health = unknown(clock.now())
    const over = new AbortController()
    if (!signal.aborted) {
      this.#move('run', run.description)
      if (definition.health) void watchHealth(definition.health, clock, over.signal, (wrong) => this.#answer(wrong))
    }
    const asked = new Promise<undefined>((resolve) => {
      if (signal.aborted) resolve(undefined)
      signal.addEventListener('abort', () => resolve(undefined), { once: true })
    })
    const exit = await Promise.race([run.exit, asked])
    over.abort()
    const end = exit ?? (await this.#end(run, definition.stopTimeout ?? defaultStopTimeout))
    this.#run = undefined
    this.#health = unknown(clock.now())
    return end
  }

  /** SIGTERM, patience, SIGKILL. However a run ends that was asked to, it is a good end; one that stays is not. */
  async #end(run: Run, patience: number): Promise<Exit> {
    if (await this.#kill(run, 'SIGTERM', patience)) return { ok: true, message: 'stopped' }
    this.#move('stop', `No end after ${patience / 1000}s, sending SIGKILL`)
    if (await this.#kill(run, 'SIGKILL', killTimeout)) return { ok: true, message: 'killed' }
    return { ok: false, message: 'Service could not be stopped' }
  }

  /** Whether the run ended within the time. */
  async #kill(run: Run, name: 'SIGTERM' | 'SIGKILL', patience: number): Promise<boolean> {
    const timer = new AbortController()
    const late = this.#around.clock.sleep(patience, timer.signal).then(() => false)
    const sent = Promise.resolve()
      .then(() => run.kill(name))
      .catch((error: Error) => this.#tell(`${name} failed: ${error.message}`))
    const ended = await Promise.race([sent.then(() => run.exit).then(() => true), run.exit.then(() => true), late])
    timer.abort()
    return ended
  }

  #over(exit: Exit): void {
    if (this.#state === 'Running' && exit.ok) this.#move('finish', 'Service finished successfully')
    else this.#move('fail', exit.message)
  }

  #answer(wrong: string | undefined): void {
    const healthy = wrong === undefined
    const message = wrong ?? ''
    const { unknown, healthy: before, lastMessage } = this.#health
    const turned = unknown || before !== healthy
    if (!turned && lastMessage === message) return
    this.#health = {
      unknown: false,
      healthy,
      lastMessage: message,
      lastChange: turned ? this.#around.clock.now() : this.#health.lastChange,
    }
    if (turned) this.#tell(healthy ? 'Health check successful' : `Health check failed: ${message}`)
  }

  #move(step: Step, message: string): void {
    this.#state = next(this.#state, step)
    this.#tell(message)
  }

  #tell(message: string): void {
    const event: ServiceEvent = {
      id: this.#definition.id,
      state: this.#state,
      message,
      time: this.#around.clock.now(),
      health: this.#health,
    }
    this.#events.push(event)
    if (this.#events.length > eventsKept) this.#events.shift()
    this.#around.told(event)
  }
}

function unknown(since: Date): Health {
  return { unknown: true, healthy: false, lastMessage: '', lastChange: since }
}
