/** One service and its transitions through the states of state.ts. */

import { background } from '../cosi/background.ts'
import type { Clock } from '../cosi/clock.ts'
import type { Logger } from '../cosi/log.ts'
import type { Store } from '../cosi/store.ts'
import { TokenBucket, type TokenRate } from '../timing/token-bucket.ts'
import { errnoOf } from '../wire/errno.ts'
import { messageOf } from '../wire/error-message.ts'
import { watchCondition } from './condition.ts'
import { type Exit, type Run, type RunContext, type ServiceDefinition, Skip } from './definition.ts'
import { type Health, healthAfter, unknownHealth, watchHealth } from './health.ts'
import type { LogRing } from './log-ring.ts'
import type { ServiceEvent, ServiceSnapshot } from './snapshot.ts'
import { isDown, next, type State, type Step } from './state.ts'

/** What a service gets from its supervisor. */
export interface ServiceContext {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly output: LogRing
  /** The lowest OOM score that may be set. */
  readonly oomFloor: number
  /** Those of `ids` that are not up. */
  notUp(ids: readonly string[]): string[]
  onEvent(event: ServiceEvent): void
}

/** Milliseconds between the end of a run and the next attempt. */
export const restartInterval = 5000
/** A run was steady if it was healthy or, without a health check, lasted this long (ms). A steady run is restarted at once. */
const steadyTime = 10_000
/** Immediate restarts per second and in a row: a service that keeps exiting waits for `restartInterval`. */
const atOnceRate: TokenRate = { rate: 1 / 10, burst: 10 }
const defaultStopTimeout = 10_000
const killTimeout = 10_000
const eventsKept = 64

export class Service {
  readonly #context: ServiceContext
  #definition: ServiceDefinition
  #state: State = 'Initialized'
  #health: Health
  #run: Run | undefined
  #pid: number | undefined
  /** Runs that were started, and when the latest was. */
  #starts = { count: 0, at: 0 }
  /** Offsets in the log at which the latest run started, and the last run that ended. */
  readonly #log = { latest: 0, ended: 0 }
  #wasSteady = false
  readonly #atOnce: TokenBucket
  #stopping: AbortController | undefined
  #ended: Promise<void> = Promise.resolve()
  #wake = () => {}
  readonly #events: ServiceEvent[] = []

  constructor(definition: ServiceDefinition, context: ServiceContext) {
    this.#definition = definition
    this.#context = context
    this.#health = unknownHealth(context.clock.now())
    this.#atOnce = new TokenBucket(atOnceRate, context.clock.elapsed())
  }

  get definition(): ServiceDefinition {
    return this.#definition
  }

  get state(): State {
    return this.#state
  }

  /** Running, and healthy if there is a health check. */
  get isUp(): boolean {
    return this.#state === 'Running' && (!this.#definition.health || this.#health.healthy)
  }

  snapshot(): ServiceSnapshot {
    return {
      id: this.#definition.id,
      state: this.#state,
      health: this.#health,
      pid: this.#run?.pid ?? this.#pid,
      starts: this.#starts.count,
      steady: this.#run !== undefined && this.#context.clock.elapsed() - this.#starts.at >= steadyTime,
      logFrom: this.#log.ended,
      events: [...this.#events],
    }
  }

  /** Replaces the definition; a service that runs uses it from its next start. */
  redefine(definition: ServiceDefinition): void {
    this.#definition = definition
  }

  /** Starts the service unless it is already starting or running. */
  start(): void {
    if (!isDown(this.#state)) return
    const stopping = new AbortController()
    this.#stopping = stopping
    this.#move('start', 'Starting service')
    this.#ended = this.#live(this.#definition, stopping.signal).catch((error) => this.#crashed(error))
  }

  /** Stops the service and waits until it is down. */
  async stop(): Promise<void> {
    if (!isDown(this.#state) && !this.#stopping?.signal.aborted) {
      this.#move('stop', this.#run ? 'Sending SIGTERM' : 'Stopping service')
      this.#stopping?.abort()
    }
    await this.#ended
  }

  /** Re-evaluates the conditions; called when another service has changed. */
  wake(): void {
    this.#wake()
  }

  async #live(definition: ServiceDefinition, signal: AbortSignal): Promise<void> {
    const { oom } = definition
    const { oomFloor } = this.#context
    const context: RunContext = {
      definition,
      oom: oom === undefined ? undefined : Math.max(oom, oomFloor),
      store: this.#context.store,
      output: this.#context.output,
      clock: this.#context.clock,
      signal,
      note: (message) => this.#emit(message),
      created: (pid) => {
        this.#pid = pid
      },
    }
    if (oom !== undefined && oom < oomFloor) this.#emit(`OOM score ${oom} may not be set here, ${oomFloor} is used`)
    for (;;) {
      const exit = await this.#attempt(context)
      if (signal.aborted) return this.#move(exit.ok ? 'finish' : 'fail', exit.ok ? 'Service stopped' : exit.message, exit.code)
      if (this.#state === 'Skipped') return
      if (definition.restart === 'never' || (definition.restart === 'untilSuccess' && exit.ok)) return this.#over(exit)
      const interval = this.#mayRestartAtOnce() ? 0 : restartInterval
      this.#move('retry', `${exit.message}, starting again in ${interval / 1000}s`, exit.code)
      await this.#context.clock.sleep(interval, signal)
    }
  }

  /** Goes once through conditions, preparation and a run. A stop on the way counts as success. */
  async #attempt(context: RunContext): Promise<Exit> {
    const stopped: Exit = { ok: true, message: 'stopped' }
    try {
      if (!(await this.#conditions(context))) return stopped
      this.#move('prepare', 'Running pre state')
      await context.definition.prepare?.(context)
      if (context.signal.aborted) return stopped
      this.#move('prepare', 'Creating service runner')
      this.#log.latest = context.output.end
      this.#run = await context.definition.runner(context)
    } catch (error) {
      this.#pid = undefined
      if (context.signal.aborted) return stopped
      if (error instanceof Skip) {
        this.#move('skip', `Service skipped: ${error.message}`)
        return stopped
      }
      return failed(error)
    }
    return this.#watch(context, this.#run)
  }

  /** Waits until no condition is unmet; returns false when the service was stopped meanwhile. */
  async #conditions({ definition, signal }: RunContext): Promise<boolean> {
    let changed = Promise.withResolvers<void>()
    const wake = () => changed.resolve()
    const watch = watchCondition(this.#context.store, (view) => definition.wait?.(view) ?? [], wake)
    signal.addEventListener('abort', wake)
    this.#wake = wake
    try {
      let last = ''
      while (!signal.aborted) {
        changed = Promise.withResolvers()
        const services = this.#context.notUp(definition.dependsOn).map((id) => `service "${id}" to be "up"`)
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

  /** Follows a run from its start until it ends or is stopped. */
  async #watch({ definition, signal, clock }: RunContext, run: Run): Promise<Exit> {
    this.#health = unknownHealth(clock.now())
    const over = new AbortController()
    this.#starts = { count: this.#starts.count + 1, at: clock.elapsed() }
    let healthy = false
    const ended = run.exit.catch(failed)
    if (!signal.aborted) {
      this.#move('run', run.description)
      if (definition.health)
        background(
          watchHealth(definition.health, clock, over.signal, (problem) => {
            healthy ||= problem === undefined
            this.#recordHealth(problem)
          }),
          this.#context.log,
          'health check ended',
          { service: definition.id },
        )
    }
    const stopRequested = Promise.withResolvers<undefined>()
    const requestStop = () => stopRequested.resolve(undefined)
    if (signal.aborted) requestStop()
    signal.addEventListener('abort', requestStop, { once: true })
    const exit = await Promise.race([ended, stopRequested.promise])
    // The signal lives as long as the service: a listener that stayed would be one more for each restart.
    signal.removeEventListener('abort', requestStop)
    over.abort()
    const end = exit ?? (await this.#end(run, ended, definition.stopTimeout ?? defaultStopTimeout))
    this.#log.ended = this.#log.latest
    this.#wasSteady = definition.health ? healthy : clock.elapsed() - this.#starts.at >= steadyTime
    this.#run = undefined
    this.#pid = undefined
    this.#health = unknownHealth(clock.now())
    return end
  }

  /**
   * Sends SIGTERM, waits for the timeout, sends SIGKILL. A run that ends after a stop request counts as success, one that
   * survives SIGKILL does not.
   */
  async #end(run: Run, ended: Promise<Exit>, timeout: number): Promise<Exit> {
    if (await this.#kill(run, ended, 'SIGTERM', timeout)) return { ok: true, message: 'stopped' }
    this.#move('stop', `No end after ${timeout / 1000}s, sending SIGKILL`)
    if (await this.#kill(run, ended, 'SIGKILL', killTimeout)) return { ok: true, message: 'killed' }
    return { ok: false, message: 'Service could not be stopped' }
  }

  /** Whether the run ended within the timeout. */
  async #kill(run: Run, exit: Promise<Exit>, name: 'SIGTERM' | 'SIGKILL', timeout: number): Promise<boolean> {
    const timer = new AbortController()
    const late = this.#context.clock.sleep(timeout, timer.signal).then(() => false)
    const sent = Promise.try(() => run.kill(name)).catch((error: Error) => this.#emit(`${name} failed: ${error.message}`))
    const ended = await Promise.race([sent.then(() => exit).then(() => true), exit.then(() => true), late])
    timer.abort()
    return ended
  }

  #over(exit: Exit): void {
    if (this.#state === 'Running' && exit.ok) this.#move('finish', 'Service finished successfully')
    else this.#move('fail', exit.message, exit.code)
  }

  #mayRestartAtOnce(): boolean {
    const may = this.#wasSteady && this.#atOnce.take(this.#context.clock.elapsed())
    this.#wasSteady = false
    return may
  }

  /** Handles an error of the supervisor itself: it ends this service, not the machine. */
  #crashed(error: unknown): void {
    this.#context.log.error('service supervision failed', { service: this.#definition.id, error })
    this.#run = undefined
    this.#pid = undefined
    this.#state = 'Failed'
    this.#emit(failed(error).message)
  }

  #recordHealth(problem: string | undefined): void {
    const { health, turned } = healthAfter(this.#health, problem, this.#context.clock.now())
    this.#health = health
    if (turned) this.#emit(problem === undefined ? 'Health check successful' : `Health check failed: ${problem}`)
  }

  #move(step: Step, message: string, code?: string): void {
    this.#state = next(this.#state, step)
    this.#emit(message, step, code)
  }

  #emit(message: string, step?: Step, code?: string): void {
    const event: ServiceEvent = {
      id: this.#definition.id,
      state: this.#state,
      ...(step && { step }),
      message,
      ...(code && { code }),
      time: this.#context.clock.now(),
      health: this.#health,
    }
    this.#events.push(event)
    if (this.#events.length > eventsKept) this.#events.shift()
    this.#context.onEvent(event)
  }
}

const failed = (error: unknown): Exit => ({ ok: false, message: messageOf(error), code: errnoOf(error) })
