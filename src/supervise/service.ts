/** One service living through the states of state.ts. */

import { background } from '../cosi/background.ts'
import type { Clock } from '../cosi/clock.ts'
import type { Logger } from '../cosi/log.ts'
import type { Store } from '../cosi/store.ts'
import { watchCondition } from './condition.ts'
import { type Exit, type Life, type Run, type ServiceDefinition, Skip } from './definition.ts'
import { type Health, watchHealth } from './health.ts'
import type { LogRing } from './log-ring.ts'
import type { ServiceEvent, ServiceSnapshot } from './snapshot.ts'
import { isDown, next, type State, type Step } from './state.ts'

/** What a service needs from its supervisor. */
export interface Surroundings {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly output: LogRing
  /** The lowest OOM score that may be set. */
  readonly oomFloor: number
  /** Of the services in `ids`, those that are not up. */
  notUp(ids: readonly string[]): string[]
  told(event: ServiceEvent): void
}

/** Milliseconds between a run's end and the next attempt. */
export const restartInterval = 5000
/** A run that was healthy, or lasted for so long where that is not watched, was steady: it is followed by the next at once. */
const steadyTime = 10_000
/** Milliseconds between two restarts at once: what keeps ending waits for its interval. */
const atOncePeriod = 30_000
const defaultStopTimeout = 10_000
const killTimeout = 10_000
const eventsKept = 64

export class Service {
  readonly #around: Surroundings
  #definition: ServiceDefinition
  #state: State = 'Initialized'
  #health: Health
  #run: Run | undefined
  #pid: number | undefined
  #began = 0
  /** Where in the log the latest run began, and the last one that ended. */
  readonly #log = { latest: 0, ended: 0 }
  #wasSteady = false
  #atOnceSince = Number.NEGATIVE_INFINITY
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
    return {
      id: this.#definition.id,
      state: this.#state,
      health: this.#health,
      pid: this.#run?.pid ?? this.#pid,
      steady: this.#run !== undefined && this.#around.clock.elapsed() - this.#began >= steadyTime,
      logFrom: this.#log.ended,
      events: [...this.#events],
    }
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
    this.#ended = this.#live(this.#definition, stopping.signal).catch((error) => this.#broke(error))
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
      created: (pid) => {
        this.#pid = pid
      },
    }
    if (oom !== undefined && oom < oomFloor) this.#tell(`OOM score ${oom} may not be set here, ${oomFloor} is used`)
    for (;;) {
      const exit = await this.#attempt(life)
      if (signal.aborted) return this.#move(exit.ok ? 'finish' : 'fail', exit.ok ? 'Service stopped' : exit.message)
      if (this.#state === 'Skipped') return
      if (definition.restart === 'never' || (definition.restart === 'untilSuccess' && exit.ok)) return this.#over(exit)
      const interval = this.#mayRestartAtOnce() ? 0 : restartInterval
      this.#move('retry', `${exit.message}, starting again in ${interval / 1000}s`)
      await this.#around.clock.sleep(interval, signal)
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
      this.#log.latest = life.output.end
      this.#run = await life.definition.runner(life)
    } catch (error) {
      this.#pid = undefined
      if (life.signal.aborted) return stopped
      if (error instanceof Skip) {
        this.#move('skip', `Service skipped: ${error.message}`)
        return stopped
      }
      return failed(error)
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
    this.#began = clock.elapsed()
    let healthy = false
    const ended = run.exit.catch(failed)
    if (!signal.aborted) {
      this.#move('run', run.description)
      if (definition.health)
        background(
          watchHealth(definition.health, clock, over.signal, (wrong) => {
            healthy ||= wrong === undefined
            this.#answer(wrong)
          }),
          this.#around.log,
          'health check ended',
          { service: definition.id },
        )
    }
    const asked = new Promise<undefined>((resolve) => {
      if (signal.aborted) resolve(undefined)
      signal.addEventListener('abort', () => resolve(undefined), { once: true })
    })
    const exit = await Promise.race([ended, asked])
    over.abort()
    const end = exit ?? (await this.#end(run, ended, definition.stopTimeout ?? defaultStopTimeout))
    this.#log.ended = this.#log.latest
    this.#wasSteady = definition.health ? healthy : clock.elapsed() - this.#began >= steadyTime
    this.#run = undefined
    this.#pid = undefined
    this.#health = unknown(clock.now())
    return end
  }

  /** SIGTERM, patience, SIGKILL. However a run ends that was asked to, it is a good end; one that stays is not. */
  async #end(run: Run, ended: Promise<Exit>, patience: number): Promise<Exit> {
    if (await this.#kill(run, ended, 'SIGTERM', patience)) return { ok: true, message: 'stopped' }
    this.#move('stop', `No end after ${patience / 1000}s, sending SIGKILL`)
    if (await this.#kill(run, ended, 'SIGKILL', killTimeout)) return { ok: true, message: 'killed' }
    return { ok: false, message: 'Service could not be stopped' }
  }

  /** Whether the run ended within the time. */
  async #kill(run: Run, exit: Promise<Exit>, name: 'SIGTERM' | 'SIGKILL', patience: number): Promise<boolean> {
    const timer = new AbortController()
    const late = this.#around.clock.sleep(patience, timer.signal).then(() => false)
    const sent = Promise.resolve()
      .then(() => run.kill(name))
      .catch((error: Error) => this.#tell(`${name} failed: ${error.message}`))
    const ended = await Promise.race([sent.then(() => exit).then(() => true), exit.then(() => true), late])
    timer.abort()
    return ended
  }

  #over(exit: Exit): void {
    if (this.#state === 'Running' && exit.ok) this.#move('finish', 'Service finished successfully')
    else this.#move('fail', exit.message)
  }

  #mayRestartAtOnce(): boolean {
    const now = this.#around.clock.elapsed()
    const may = this.#wasSteady && now - this.#atOnceSince >= atOncePeriod
    if (may) this.#atOnceSince = now
    this.#wasSteady = false
    return may
  }

  /** What must not happen: the supervisor itself made a mistake. It ends this service, not the machine. */
  #broke(error: unknown): void {
    this.#around.log.error('service supervision failed', { service: this.#definition.id, error })
    this.#run = undefined
    this.#pid = undefined
    this.#state = 'Failed'
    this.#tell(failed(error).message)
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
    this.#tell(message, step)
  }

  #tell(message: string, step?: Step): void {
    const event: ServiceEvent = {
      id: this.#definition.id,
      state: this.#state,
      ...(step && { step }),
      message,
      time: this.#around.clock.now(),
      health: this.#health,
    }
    this.#events.push(event)
    if (this.#events.length > eventsKept) this.#events.shift()
    this.#around.told(event)
  }
}

const failed = (error: unknown): Exit => ({ ok: false, message: error instanceof Error ? error.message : String(error) })

function unknown(since: Date): Health {
  return { unknown: true, healthy: false, lastMessage: '', lastChange: since }
}
