import { timerDelay } from '../timing/timer.ts'
import { background } from './background.ts'
import { BackgroundTasks, longestPause } from './background-tasks.ts'
import type { Controller, Input, Output, Reader, Round } from './controller.ts'
import { type ControllerState, initialState, type Missing, nextTrouble } from './controller-state.ts'
import { StoreError } from './errors.ts'
import { destroyable, type Put, readerOf, recording, writerOf } from './handles.ts'
import type { Logger } from './log.ts'
import type { Resource, ResourceType } from './resource.ts'
import type { Runtime } from './runtime.ts'
import type { StoreEvent } from './store-table.ts'

/** Interval in milliseconds at which the wall clock is compared with the time a round waits for. */
const wallPeriod = 30_000

/** When that time is already past, the next round follows after this many milliseconds. */
const leastWait = 1_000

/** One controller and its rounds. */
export class Runner {
  readonly state: ControllerState
  readonly #abort = new AbortController()
  readonly #tasks: BackgroundTasks
  readonly #dynamic = new Map<string, { input: Input; unsubscribe: () => void }>()
  #timer?: ReturnType<typeof setTimeout>
  #moment?: ReturnType<typeof setTimeout>
  #started = false
  #startTimer?: ReturnType<typeof setTimeout>

  constructor(
    readonly controller: Controller,
    readonly runtime: Runtime,
    readonly log: Logger,
  ) {
    this.state = initialState(controller.name)
    const { clock, firstPause } = runtime
    this.#tasks = new BackgroundTasks(this.state.troubles, { clock, firstPause, log, wake: () => this.wake() })
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
    this.#begin()
    this.wake()
  }

  /** Starts what reports events from outside. When that fails it is retried; rounds and all other controllers continue meanwhile. */
  #begin(failures = 0): void {
    try {
      this.controller.start?.({ wake: () => this.wake(), signal: this.#abort.signal, log: this.log })
    } catch (error) {
      this.state.failures++
      const pause = Math.min(longestPause, this.runtime.firstPause * 2 ** failures)
      this.log.error('controller start failed', { error, retry_in: `${pause}ms` })
      const again = () => {
        this.#begin(failures + 1)
        this.wake()
      }
      this.#startTimer = setTimeout(again, timerDelay(pause))
    }
  }

  #subscribe(input: Input): () => void {
    const { kind, type, namespace, id } = input
    const wakes = kind === 'destroy-ready' ? ({ resource }: StoreEvent) => resource !== undefined && destroyable(resource) : matters
    return this.runtime.store.subscribe(type, (event) => wakes(event) && this.wake(), { namespace, only: id })
  }

  stop(): void {
    this.#abort.abort(new Error('the runtime stops'))
    this.#clearTimers()
    clearTimeout(this.#startTimer)
    this.#tasks.stop(this.#abort.signal.reason)
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
    const puts = new Map<Output, Map<string, Put>>()
    const retained = new Map<Output, Set<string>>()
    const named = new Set<string>()
    const requested = new Set<string>()
    const missing = new Map<string, Missing>()
    const { clock, store } = this.runtime
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
        const [name, id] = typeof key === 'string' ? [key, key] : [key.name, `${key.name} ${key.of}`]
        named.add(id)
        this.#tasks.run(id, name, task)
      },
      also: <S>(input: Input<S>): Reader<S> => {
        requested.add(this.#alsoRead(input))
        return recording(readerOf(store, input), input, missing) as Reader<S>
      },
    }
    for (const [key, input] of Object.entries<Input>(controller.inputs)) round[key] = recording(readerOf(store, input), input, missing)
    for (const [key, output] of Object.entries<Output>(controller.outputs)) {
      const [written, kept] = [new Map<string, Put>(), new Set<string>()]
      puts.set(output, written)
      retained.set(output, kept)
      round[key] = writerOf(store, output, written, kept)
    }
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
      this.#tasks.retain(named)
      this.#forget(requested)
      if (state.lastError) log.resolved('controller recovered')
      state.lastError = undefined
    } catch (error) {
      if (this.#abort.signal.aborted) return
      state.failures++
      state.lastError = nextTrouble(state.lastError, error, clock)
      const { message, inRow } = state.lastError
      pause = Math.min(longestPause, this.runtime.firstPause * 2 ** (inRow - 1))
      moment = undefined
      log.warn('controller failed', { error: message, retry_in: `${pause}ms` })
    } finally {
      this.runtime.ended(state, clock.elapsed() - began)
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
        const gone = metadata.phase === 'tearingDown' || !(wanted.has(metadata.id) || retained.get(output)?.has(metadata.id))
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
}

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
