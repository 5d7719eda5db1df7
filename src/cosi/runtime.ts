/**
 * Runs controllers: one round at a time for each, all of them side by side. A change of an input marks its readers
 * due; however many changes come before the round starts, one round sees them all. A round that throws changes
 * nothing and is tried again after a growing pause.
 */

import { background } from './background.ts'
import { type Clock, systemClock } from './clock.ts'
import type { Controller, Input, Output, Reader, Round, Task, Writer } from './controller.ts'
import { StoreError } from './errors.ts'
import type { Logger } from './log.ts'
import { parseSpec, type Resource, type ResourceType } from './resource.ts'
import type { Store, StoreEvent } from './store.ts'
import { timerDelay } from './timer.ts'

/** Something that goes wrong again and again. */
export interface Trouble {
  readonly message: string
  /** When it went wrong last, and when first without a success since. */
  readonly time: Date
  readonly since: Date
  readonly inRow: number
}

/** A resource that was asked for and was not there; without an id, a whole kind of which there was none. */
export interface Missing {
  readonly type: ResourceType
  readonly namespace: string
  readonly id: string
}

/** How a controller has fared: for those who ask why. */
export interface ControllerState {
  readonly name: string
  rounds: number
  failures: number
  /** Milliseconds that its rounds have taken, waiting included. */
  spent: number
  /** Set while the last round failed. */
  lastError?: Trouble
  /** What its background tasks cannot do at the moment though they go on trying, by task. */
  readonly troubles: Map<string, Trouble>
  /** What the last round asked for in vain. */
  missing: readonly Missing[]
  /** Inputs that its rounds asked for beside the declared ones. */
  alsoReads: readonly Input[]
  running: boolean
  /** When the round began that is still under way: for people, and by the monotonic clock. */
  roundSince?: { readonly time: Date; readonly elapsed: number }
  due: boolean
}

const usualFirstPause = 250
const longestPause = 60_000
/** How often the wall clock is compared with a moment that a round waits for, in milliseconds. */
const wallPeriod = 30_000
/** A round that waits for a moment that is past already is followed by another after this time. */
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
          // One's own puts need no new round; a finalizer gone, or a foreign hand, does.
          if (resource?.metadata.owner === this.controller.name && resource.metadata.phase === 'tearingDown') this.wake()
        },
        { namespace },
      )
    try {
      this.controller.start?.({ wake: () => this.wake(), signal: this.#abort.signal, log: this.log })
    } catch (error) {
      // Its outside events are lost; its rounds and everybody else go on.
      this.state.failures++
      this.log.error('controller could not listen to the outside', { error })
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
    const kept = new Map<Output, Set<string>>(Object.values(controller.outputs).map((output) => [output, new Set()]))
    const named = new Set<string>()
    const asked = new Set<string>()
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
        this.#keepTask(key, task)
      },
      also: <S>(input: Input<S>): Reader<S> => {
        asked.add(this.#alsoRead(input))
        return noting(this.#reader(input), input, missing) as Reader<S>
      },
    }
    for (const [key, input] of Object.entries<Input>(controller.inputs)) round[key] = noting(this.#reader(input), input, missing)
    for (const [key, output] of Object.entries<Output>(controller.outputs))
      round[key] = this.#writer(output, puts.get(output)!, kept.get(output)!)
    state.rounds++
    const began = clock.elapsed()
    state.roundSince = { time: clock.now(), elapsed: began }
    try {
      this.#hold()
      const departing = this.#departing()
      await controller.reconcile(round)
      if (this.#abort.signal.aborted) return
      const clean = this.#commit(puts, kept)
      if (clean) this.#release(departing)
      for (const [key, { abort }] of this.#tasks) {
        if (named.has(key)) continue
        this.#tasks.delete(key)
        state.troubles.delete(key)
        abort.abort(new Error('no longer wanted'))
      }
      this.#forget(asked)
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

  /** Wakes when the wall clock shows a moment. Timers do not follow a clock that is stepped, so it is looked at now and then. */
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

  /** An input from now on; its key. */
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

  /** Ends the inputs that a round did not ask for, and lets go of what only they held. */
  #forget(asked: ReadonlySet<string>): void {
    if ([...this.#dynamic.keys()].every((key) => asked.has(key))) return
    const { store } = this.runtime
    for (const [key, { input, unsubscribe }] of this.#dynamic) {
      if (asked.has(key)) continue
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

  #writer(output: Output, puts: Map<string, Put>, kept: Set<string>): Writer<unknown> {
    return {
      ...this.#reader(output),
      put: (id, spec, { labels = {}, annotations = {} } = {}) =>
        puts.set(id, { spec: parseSpec(output.type, id, spec), labels, annotations }),
      keep: (id) => kept.add(id),
    }
  }

  /** Strong inputs are held from the first round that could have seen them. */
  #hold(): void {
    for (const input of this.#strong()) this.#holdOne(input)
  }

  /** What is held and on its way out already now, so that this round's outputs are made without it. */
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

  /** Lets go of what departed; what began to depart during the round waits for the next, which is due. */
  #release(departing: readonly Resource[]): void {
    const { store } = this.runtime
    for (const { metadata } of departing) {
      const type = this.#strong().find(({ type }) => type.type === metadata.type)?.type
      const { namespace, id, created } = metadata
      if (type && store.get(type, id, { namespace })?.metadata.created === created)
        store.removeFinalizer(type, id, this.controller.name, { namespace })
    }
  }

  /** Makes the store what the round said; false while something waits for others' finalizers. */
  #commit(puts: Map<Output, Map<string, Put>>, kept: Map<Output, Set<string>>): boolean {
    const { store } = this.runtime
    const owner = this.controller.name
    let clean = true
    // All or nothing: what is another's is found out before anything is changed.
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
        const gone = metadata.phase === 'tearingDown' || !(wanted.has(metadata.id) || kept.get(output)!.has(metadata.id))
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

  #keepTask(key: string, task: Task): void {
    const running = this.#tasks.get(key)
    if (running && !running.done) return
    const { troubles } = this.state
    const abort = new AbortController()
    const entry = { abort, done: false }
    this.#tasks.set(key, entry)
    const tell = (error?: unknown) => {
      if (abort.signal.aborted) return
      if (error === undefined) troubles.delete(key)
      else troubles.set(key, this.#trouble(troubles.get(key), error))
    }
    const run = async () => task(abort.signal, () => this.wake(), tell)
    run()
      .then(() => tell())
      .catch((error) => {
        if (abort.signal.aborted) return
        tell(error)
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
    const message = error instanceof Error ? error.message : String(error)
    return { message, time, since: before?.since ?? time, inRow: (before?.inRow ?? 0) + 1 }
  }
}

/** The same reader, and what it is asked for in vain is noted. */
function noting(reader: Reader<unknown>, { type, namespace }: Input, missing: Map<string, Missing>): Reader<unknown> {
  const note = (id: string) => {
    const key = `${namespace}/${type.type}/${id}`
    if (!missing.has(key)) missing.set(key, { type, namespace, id })
  }
  return {
    get: (id) => {
      const found = reader.get(id)
      if (!found) note(id)
      return found
    },
    list: (query) => {
      const found = reader.list(query)
      if (found.length === 0) note('')
      return found
    },
  }
}

const running = (resource: Resource): boolean => resource.metadata.phase === 'running'

/** On its way out, and nobody holds it. */
const destroyable = ({ metadata }: Resource): boolean => metadata.phase === 'tearingDown' && metadata.finalizers.length === 0

/** Who holds a resource is nothing a reader sees. */
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
  /** Milliseconds from a first failure to the next try; it doubles with each failure. */
  readonly firstPause: number
  /** The wall clock, for time stamps. */
  readonly now: () => Date
  readonly #runners = new Map<string, Runner>()
  readonly #log: Logger
  #resting: (() => void)[] = []
  #started = false

  constructor(
    readonly store: Store,
    options: { log: Logger; clock?: Clock; firstPause?: number },
  ) {
    this.#log = options.log
    this.clock = options.clock ?? systemClock
    this.now = this.clock.now
    this.firstPause = options.firstPause ?? usualFirstPause
  }

  /** Adds controllers. Throws StoreError 'owner' when two would own one kind, 'exists' when a name is taken. */
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

  /** All controllers, for the dependency graph and for those who ask why. */
  controllers(): { controller: Controller; state: ControllerState }[] {
    return [...this.#runners.values()].map(({ controller, state }) => ({ controller, state }))
  }

  /** Resolves when no controller is due or running; those that wait for a timer are at rest. */
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
