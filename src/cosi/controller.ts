/**
 * A controller is a name, its inputs, its outputs and one function. The function is level-triggered: it reads the current
 * state and puts the desired one; owned resources that it does not put are torn down.
 */
import type { Clock } from './clock.ts'
import type { Logger } from './log.ts'
import type { Resource, ResourceType } from './resource.ts'
import type { Selector } from './selector.ts'
import type { IdMatcher } from './store-table.ts'

/**
 * How a controller depends on a type: strong inputs are held by a finalizer until everything derived from them is undone;
 * destroy-ready inputs are visible only when they are being torn down and no finalizer is left.
 */
export interface Input<S = unknown> {
  readonly kind: 'weak' | 'strong' | 'destroy-ready'
  readonly type: ResourceType<S>
  readonly namespace: string
  readonly id?: string | undefined
}

/** An output: a type that only this controller writes, or one shared with others, where each owns what it created. */
export interface Output<S = unknown> {
  readonly kind: 'exclusive' | 'shared'
  readonly type: ResourceType<S>
  readonly namespace: string
}

type Narrow = string | { namespace?: string; id?: string }

/** Reads a type; its changes wake the controller. */
export const weak = <S>(type: ResourceType<S>, narrow: Narrow = {}): Input<S> => input('weak', type, narrow)

/** Reads a type and holds each resource by a finalizer until everything derived from it is gone. */
export const strong = <S>(type: ResourceType<S>, narrow: Narrow = {}): Input<S> => input('strong', type, narrow)

/** Reads resources of a type that are being torn down and have no finalizer left; wakes when one reaches that state. */
export const destroyReady = <S>(type: ResourceType<S>, narrow: Narrow = {}): Input<S> => input('destroy-ready', type, narrow)

function input<S>(kind: Input['kind'], type: ResourceType<S>, narrow: Narrow): Input<S> {
  const { namespace = type.namespace, id } = typeof narrow === 'string' ? { namespace: narrow } : narrow
  return { kind, type, namespace, id }
}

/** Writes a type that no other controller may write. */
export const exclusive = <S>(type: ResourceType<S>, namespace: string = type.namespace): Output<S> => ({
  kind: 'exclusive',
  type,
  namespace,
})

/** Writes resources of a type together with other controllers. */
export const shared = <S>(type: ResourceType<S>, namespace: string = type.namespace): Output<S> => ({ kind: 'shared', type, namespace })

/** Read access to a declared input; resources that are being torn down are hidden. */
export interface Reader<S> {
  get(id: string): Resource<S> | undefined
  list(query?: { labels?: readonly Selector[]; id?: IdMatcher }): Resource<S>[]
}

/** Write access to a declared output; the puts of a round are applied together after it. */
export interface Writer<S> extends Reader<S> {
  put(id: string, spec: S, extra?: { labels?: Record<string, string>; annotations?: Record<string, string> }): void
  /** Leaves the resource as it is. */
  keep(id: string): void
}

/** What every round gets besides its handles. */
export interface Round {
  readonly log: Logger
  /** Aborted when the runtime stops. */
  readonly signal: AbortSignal
  readonly clock: Clock
  /** The wall clock, for time stamps and certificates. Durations use `clock`. */
  readonly now: () => Date
  /**
   * Reads an input that is known only at run time. It stays an input as long as every round requests it. A strong one is held
   * from here on, and released when a round no longer requests it.
   */
  also<S>(input: Input<S>): Reader<S>
  /** Runs another round after this many milliseconds, unless one runs before. */
  wakeIn(milliseconds: number): void
  /** Runs another round when the wall clock reaches this time, also by a step. */
  wakeAt(time: Date): void
  /**
   * Keeps one task per key running as long as every round names the key. A task that is no longer named is aborted. A task
   * that fails is logged and restarted by a later round.
   */
  background(key: string | TaskKey, task: Task): void
}

/** The key of a task that starts again when something changes: its name, and what it runs with (a version, a digest). */
export interface TaskKey {
  readonly name: string
  readonly of: string
}

/**
 * Work beside the rounds. `wake` requests a round. `report` publishes a problem of a task that keeps retrying by itself;
 * without an error it clears the problem.
 */
export type Task = (signal: AbortSignal, wake: () => void, report: (error?: unknown) => void) => Promise<void>

type Handles<I, O> = { readonly [K in keyof I]: I[K] extends Input<infer S> ? Reader<S> : never } & {
  readonly [K in keyof O]: O[K] extends Output<infer S> ? Writer<S> : never
}

/** What a controller's `start` gets. */
export interface Outside {
  wake: () => void
  signal: AbortSignal
  log: Logger
}

/** A controller as the runtime runs it. */
export interface Controller {
  readonly name: string
  /** It only computes: it reads and writes resources synchronously and does nothing else, so a dry run may run it. */
  readonly effects?: 'none'
  /** The outside party that its rounds or tasks connect to. */
  readonly contacts?: string
  /** The services that it starts. */
  readonly starts?: readonly string[]
  readonly inputs: Readonly<Record<string, Input>>
  readonly outputs: Readonly<Record<string, Output>>
  start?(outside: Outside): void
  reconcile(round: Round & Record<string, unknown>): void | Promise<void>
}

/**
 * Declares a controller; `reconcile` gets handles for exactly the declared inputs and outputs. Their specs are inferred, so
 * the type bounds leave them open.
 */
export function defineController<
  // biome-ignore lint/suspicious/noExplicitAny: the spec of each input is inferred, and handles of `unknown` would fit no reader
  const I extends Record<string, Input<any>>,
  // biome-ignore lint/suspicious/noExplicitAny: the spec of each output is inferred, and handles of `unknown` would fit no writer
  const O extends Record<string, Output<any>>,
>(declaration: {
  name: string
  /** Declared by a controller that reads and writes resources synchronously and does nothing else; dry runs include it. */
  effects?: 'none'
  /** The outside party that its rounds or tasks connect to: where the controller fails, an explanation checks whether it answers. */
  contacts?: string
  /** The services that it starts: an explanation of a service that is not loaded leads to this controller. */
  starts?: readonly string[]
  inputs: I
  outputs: O
  /** Called once when the runtime starts: events from outside call `wake`. */
  start?(outside: Outside): void
  reconcile(round: Round & Handles<I, O>): void | Promise<void>
}): Controller {
  return declaration as unknown as Controller
}
