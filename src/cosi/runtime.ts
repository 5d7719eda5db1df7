/**
 * Runs controllers concurrently, one round at a time for each. A change of an input marks its readers as due; one round
 * handles all changes that came before it started. A round that throws changes nothing and is retried with increasing
 * delay.
 */

import { timerDelay } from '../timing/timer.ts'
import { messageOf } from '../wire/error-message.ts'
import { background } from './background.ts'
import { type Clock, systemClock } from './clock.ts'
import type { Controller, Input, Output, Reader, Round, Task, Writer } from './controller.ts'
import { StoreError } from './errors.ts'
import type { Logger } from './log.ts'
import { parseSpec, type Resource, type ResourceType } from './resource.ts'
import type { Store, StoreEvent } from './store.ts'

/** A recurring failure. */
export interface Trouble {
  readonly message: string
  /** The time of the last failure, and of the first one since the last success. */
  readonly time: Date
  readonly since: Date
  readonly inRow: number
}

/** A resource that was requested and did not exist; without an id, a whole type without resources. */
export interface Missing {
  readonly type: ResourceType
  readonly namespace: string
  readonly id: string
}

/** The state of a controller, for diagnosis. */
export interface ControllerState {
  readonly name: string
  rounds: number
  failures: number
  /** Milliseconds spent in its rounds, waiting included. */
  spent: number
  /** Set while the last round failed. */
  lastError?: Trouble | undefined
  /** Problems that its background tasks have reported and keep retrying, by task. */
  readonly troubles: Map<string, Trouble>
  /** Resources that the last round requested and that did not exist. */
  missing: readonly Missing[]
  /** Inputs that its rounds requested besides the declared ones. */
  alsoReads: readonly Input[]
  running: boolean
  /** When the current round began: by the wall clock for display, and by the monotonic clock. */
  roundSince?: { readonly time: Date; readonly elapsed: number } | undefined
  due: boolean
}

const usualFirstPause = 250
const longestPause = 60_000
/** Interval in milliseconds at which the wall clock is compared with the time a round waits for. */
const wallPeriod = 30_000
/** When that time is already past, the next round follows after this many milliseconds. */
const leastWait = 1_000

interface Put {
  spec: unknown
  labels: Record<string, string>
  annotations: Record<string, string>
}

class Runner {
  readonly state: ControllerState
  readonly #abort = new AbortController()
  readonly #tasks = new Map<string, { abort: AbortController; done: boolean }>()
  readonly #dynamic = new Map<string, { input: Input; unsubscribe: () => void }>()
  #timer?: ReturnType<typeof setTimeout>
  #moment?: ReturnType<typeof setTimeout>
  #started = false

  constructor(
    readonly controller: Controller,
    readonly runtime: Runtime,
    readonly log: Logger,
  ) {
    this.state = {
      name: controller.name,
      rounds: 0,
      failures: 0,
      spent: 0,
      troubles: new Map(),
      missing: [],
      alsoReads: [],
      running: false,
      due: false,
    }
  }

  start(): void {
    this.#started = true
    for (const input of Object.values<Input>(this.controller.inputs)) this.#subscribe(input)
    for (const { type, namespace } of Object.values<Output>(this.controller.outputs))
      this.runtime.store.subscribe(
        type,
        ({ resource }) => {
          // A controller's own puts need no new round; a removed finalizer, or a change by another writer, does.
          if (resource?.metadata.owner === this.controller.name && resource.metadata.phase === 'tearingDown') this.wake()
        },
        { namespace },
      )
    try {
      this.controller.start?.({ wake: () => this.wake(), signal: this.#abort.signal, log: this.log })
    } catch (error) {
      // Its outside events are lost; its rounds and all other controllers continue.
      this.state.failures++
      this.log.error('controller start failed', { error })
    }
    this.wake()
  }

  #subscribe(input: Input): () => void {
    const { kind, type, namespace, id } = input
    const wakes = kind === 'destroy-ready' ? ({ resource }: StoreEvent) => resource !== undefined && destroyable(resource) : matters
    return this.runtime.store.subscribe(type, (event) => wakes(event) && this.wake(), { namespace, only: id })
  }

  stop(): void {
    this.#abort.abort(new Error('the runtime stops'))
    this.#clearTimers()
    for (const { abort } of this.#tasks.values()) abort.abort(this.#abort.signal.reason)
  }

  wake(): void {
    if (this.state.due || !this.#started || this.#abort.signal.aborted) return
    this.state.due = true
    if (this.state.running) return
    this.#clearTimers()
    this.state.running = true
    queueMicrotask(() => background(this.#rounds(), this.log, 'controller stopped'))
  }

  async #rounds(): Promise<void> {
    while (this.state.due && !this.#abort.signal.aborted) {
      this.state.due = false
      this.#clearTimers()
      await this.#round()
    }
    this.state.running = false
    this.runtime.rested()
  }

  async #round(): Promise<void> {
    const { controller, state, log } = this
    const puts = new Map<Output, Map<string, Put>>(Object.values(controller.outputs).map((output) => [output, new Map()]))
    const retained = new Map<Output, Set<string>>(Object.values(controller.outputs).map((output) => [output, new Set()]))
    const named = new Set<string>()
    const requested = new Set<string>()
    const missing = new Map<string, Missing>()
    const { clock } = this.runtime
    let pause: number | undefined
    let moment: number | undefined
    const round: Round & Record<string, unknown> = {
      log,
      signal: this.#abort.signal,
      clock,
      now: clock.now,
      wakeIn: (milliseconds) => {
        pause = Math.min(pause ?? Number.POSITIVE_INFINITY, Math.max(0, milliseconds))
      },
      wakeAt: (time) => {
        if (!Number.isNaN(time.getTime())) moment = Math.min(moment ?? Number.POSITIVE_INFINITY, time.getTime())
      },
      background: (key, task) => {
        named.add(key)
        this.#runTask(key, task)
      },
      also: <S>(input: Input<S>): Reader<S> => {
        requested.add(this.#alsoRead(input))
        return recording(this.#reader(input), input, missing) as Reader<S>
      },
    }
    for (const [key, input] of Object.entries<Input>(controller.inputs)) round[key] = recording(this.#reader(input), input, missing)
    for (const [key, output] of Object.entries<Output>(controller.outputs))
      round[key] = this.#writer(output, puts.get(output)!, retained.get(output)!)
    state.rounds++
    const began = clock.elapsed()
    state.roundSince = { time: clock.now(), elapsed: began }
    try {
      this.#hold()
      const departing = this.#departing()
      await controller.reconcile(round)
      if (this.#abort.signal.aborted) return
      const clean = this.#commit(puts, retained)
      if (clean) this.#release(departing)
      for (const [key, { abort }] of this.#tasks) {
        if (named.has(key)) continue
        this.#tasks.delete(key)
        state.troubles.delete(key)
        abort.abort(new Error('no longer wanted'))
      }
      this.#forget(requested)
      if (state.lastError) log.info('controller recovered')
      state.lastError = undefined
    } catch (error) {
      if (this.#abort.signal.aborted) return
      state.failures++
      state.lastError = this.#trouble(state.lastError, error)
      const { message, inRow } = state.lastError
      pause = Math.min(longestPause, this.runtime.firstPause * 2 ** (inRow - 1))
      moment = undefined
      log.warn('controller failed', { error: message, retry_in: `${pause}ms` })
    } finally {
      state.spent += clock.elapsed() - began
      state.missing = [...missing.values()]
      state.roundSince = undefined
    }
    if (pause !== undefined && Number.isFinite(pause)) this.#timer = setTimeout(() => this.wake(), timerDelay(pause))
    if (moment !== undefined) this.#awaitMoment(moment)
  }

  /** Wakes when the wall clock reaches a time. Timers do not follow clock steps, so the clock is polled. */
  #awaitMoment(moment: number): void {
    const { clock } = this.runtime
    const left = moment - clock.now().getTime()
    const look = () => (clock.now().getTime() >= moment ? this.wake() : this.#awaitMoment(moment))
    this.#moment = setTimeout(look, Math.min(Math.max(left, leastWait), wallPeriod))
  }

  #clearTimers(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#moment)
  }

  #reader({ kind, type, namespace }: { kind?: string; type: Input['type']; namespace: string }): Reader<unknown> {
    const { store } = this.runtime
    const shown = kind === 'destroy-ready' ? destroyable : running
    return {
      get: (id) => {
        const resource = store.get(type, id, { namespace })
        return resource && shown(resource) ? resource : undefined
      },
      list: (query) => store.list(type, { ...query, namespace }).filter(shown),
    }
  }

  /** Adds an input at run time and returns its key. */
  #alsoRead(input: Input): string {
    const { kind, type, namespace, id = '' } = input
    const key = `${kind} ${namespace}/${type.type}/${id}`
    if (!this.#dynamic.has(key)) {
      this.#dynamic.set(key, { input, unsubscribe: this.#subscribe(input) })
      this.state.alsoReads = [...this.#dynamic.values()].map((each) => each.input)
      if (kind === 'strong') this.#holdOne(input)
    }
    return key
  }

  /** Removes the inputs that a round did not request, and the finalizers that only they held. */
  #forget(requested: ReadonlySet<string>): void {
    if ([...this.#dynamic.keys()].every((key) => requested.has(key))) return
    const { store } = this.runtime
    for (const [key, { input, unsubscribe }] of this.#dynamic) {
      if (requested.has(key)) continue
      unsubscribe()
      this.#dynamic.delete(key)
      if (input.kind !== 'strong') continue
      const { type, namespace, id } = input
      for (const { metadata } of store.list(type, { namespace }))
        if ((id === undefined || metadata.id === id) && !this.#holds(type, metadata))
          store.removeFinalizer(type, metadata.id, this.controller.name, { namespace })
    }
    this.state.alsoReads = [...this.#dynamic.values()].map((each) => each.input)
  }

  #strong(): Input[] {
    return [...Object.values<Input>(this.controller.inputs), ...this.state.alsoReads].filter(({ kind }) => kind === 'strong')
  }

  #holds(type: ResourceType, { namespace, id }: Resource['metadata']): boolean {
    return [...Object.values<Input>(this.controller.inputs), ...[...this.#dynamic.values()].map(({ input }) => input)].some(
      (input) =>
        input.kind === 'strong' && input.type === type && input.namespace === namespace && (input.id === undefined || input.id === id),
    )
  }

  #writer(output: Output, puts: Map<string, Put>, retained: Set<string>): Writer<unknown> {
    return {
      ...this.#reader(output),
      put: (id, spec, { labels = {}, annotations = {} } = {}) =>
        puts.set(id, { spec: parseSpec(output.type, id, spec), labels, annotations }),
      keep: (id) => retained.add(id),
    }
  }

  /** Strong inputs are held from the first round that could have seen them. */
  #hold(): void {
    for (const input of this.#strong()) this.#holdOne(input)
  }

  /** Held resources that are being torn down already, so that this round's outputs are built without them. */
  #departing(): Resource[] {
    const { store } = this.runtime
    return this.#strong().flatMap(({ type, namespace }) =>
      store
        .list(type, { namespace })
        .filter(({ metadata }) => metadata.phase === 'tearingDown' && metadata.finalizers.includes(this.controller.name)),
    )
  }

  #holdOne({ type, namespace, id: only }: Input): void {
    const { store } = this.runtime
    for (const { metadata } of store.list(type, { namespace }))
      if (metadata.phase === 'running' && (only === undefined || metadata.id === only))
        store.addFinalizer(type, metadata.id, this.controller.name, { namespace })
  }

  /** Releases what departed before the round; what began to depart during it waits for the next round, which is due. */
  #release(departing: readonly Resource[]): void {
    const { store } = this.runtime
    for (const { metadata } of departing) {
      const type = this.#strong().find(({ type }) => type.type === metadata.type)?.type
      const { namespace, id, created } = metadata
      if (type && store.get(type, id, { namespace })?.metadata.created === created)
        store.removeFinalizer(type, id, this.controller.name, { namespace })
    }
  }

  /** Applies the puts of a round to the store; returns false while a resource waits for finalizers of others. */
  #commit(puts: Map<Output, Map<string, Put>>, retained: Map<Output, Set<string>>): boolean {
    const { store } = this.runtime
    const owner = this.controller.name
    let clean = true
    // All or nothing: foreign owners are detected before anything is changed.
    for (const [{ type, namespace }, wanted] of puts)
      for (const id of wanted.keys()) {
        const theirs = store.get(type, id, { namespace })?.metadata.owner
        if (theirs !== undefined && theirs !== owner)
          throw new StoreError('owner', `change "${namespace}/${type.type}/${id}": it is owned by "${theirs}", not by "${owner}"`)
      }
    for (const [output, wanted] of puts) {
      const { type, namespace } = output
      for (const { metadata } of store.list(type, { namespace })) {
        if (metadata.owner !== owner) continue
        const gone = metadata.phase === 'tearingDown' || !(wanted.has(metadata.id) || retained.get(output)!.has(metadata.id))
        if (!gone) continue
        if (store.teardown(type, metadata.id, { namespace, owner })) store.destroy(type, metadata.id, { namespace, owner })
        else clean = false
      }
      for (const [id, { spec, labels, annotations }] of wanted) {
        const present = store.get(type, id, { namespace })
        if (present?.metadata.phase === 'tearingDown') continue // its destruction wakes us again
        store.put(type, id, spec, { namespace, owner, labels, annotations })
      }
    }
    return clean
  }

  #runTask(key: string, task: Task): void {
    const running = this.#tasks.get(key)
    if (running && !running.done) return
    const { troubles } = this.state
    const abort = new AbortController()
    const entry = { abort, done: false }
    this.#tasks.set(key, entry)
    const report = (error?: unknown) => {
      if (abort.signal.aborted) return
      if (error === undefined) troubles.delete(key)
      else troubles.set(key, this.#trouble(troubles.get(key), error))
    }
    const run = async () => task(abort.signal, () => this.wake(), report)
    run()
      .then(() => report())
      .catch((error) => {
        if (abort.signal.aborted) return
        report(error)
        const { message, inRow } = troubles.get(key)!
        this.log.warn('background task failed', { task: key, error: message })
        setTimeout(() => this.wake(), Math.min(longestPause, this.runtime.firstPause * 2 ** Math.min(8, inRow)))
      })
      .finally(() => {
        entry.done = true
      })
  }

  #trouble(before: Trouble | undefined, error: unknown): Trouble {
    const time = this.runtime.clock.now()
    const message = messageOf(error)
    return { message, time, since: before?.since ?? time, inRow: (before?.inRow ?? 0) + 1 }
  }
}

/** The same reader; requests for resources that do not exist are recorded. */
function recording(reader: Reader<unknown>, { type, namespace }: Input, missing: Map<string, Missing>): Reader<unknown> {
  const record = (id: string) => {
    const key = `${namespace}/${type.type}/${id}`
    if (!missing.has(key)) missing.set(key, { type, namespace, id })
  }
  return {
    get: (id) => {
      const found = reader.get(id)
      if (!found) record(id)
      return found
    },
    list: (query) => {
      const found = reader.list(query)
      if (found.length === 0) record('')
      return found
    },
  }
}

const running = (resource: Resource): boolean => resource.metadata.phase === 'running'

/** Being torn down, without a finalizer left. */
const destroyable = ({ metadata }: Resource): boolean => metadata.phase === 'tearingDown' && metadata.finalizers.length === 0

/** Readers do not see finalizers, so a change of them alone does not matter. */
function matters(event: StoreEvent): boolean {
  if (event.type !== 'updated') return true
  const { resource, old } = event
  return (
    resource.spec !== old.spec ||
    resource.metadata.phase !== old.metadata.phase ||
    resource.metadata.labels !== old.metadata.labels ||
    resource.metadata.annotations !== old.metadata.annotations
  )
}

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
