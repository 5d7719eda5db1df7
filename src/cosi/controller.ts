/**
 * A controller is a name, what it reads, what it writes and one function. The function is level based: it looks at
 * what is there and puts what should be; what it does not put is torn down.
 */
import type { Clock } from './clock.ts'
import type { Logger } from './log.ts'
import type { Resource, ResourceType } from './resource.ts'
import type { Selector } from './selector.ts'
import type { IdMatcher } from './store.ts'

/**
 * How a controller depends on a kind: strong inputs are held (by finalizer) until their consequences are undone;
 * destroy-ready ones are seen only when they are on their way out and nobody holds them any more.
 */
export interface Input<S = unknown> {
  readonly kind: 'weak' | 'strong' | 'destroy-ready'
  readonly type: ResourceType<S>
  readonly namespace: string
  readonly id?: string
}

/** What a controller writes: a kind that is its alone, or one shared with others, each owning what it made. */
export interface Output<S = unknown> {
  readonly kind: 'exclusive' | 'shared'
  readonly type: ResourceType<S>
  readonly namespace: string
}

type Narrow = string | { namespace?: string; id?: string }

/** Reads a kind; wakes on its changes. */
export const weak = <S>(type: ResourceType<S>, narrow: Narrow = {}): Input<S> => input('weak', type, narrow)

/** Reads a kind and holds each resource until what followed from it is gone. */
export const strong = <S>(type: ResourceType<S>, narrow: Narrow = {}): Input<S> => input('strong', type, narrow)

/** Reads those of a kind that wait to be destroyed and are held by nobody; wakes when one gets there. */
export const destroyReady = <S>(type: ResourceType<S>, narrow: Narrow = {}): Input<S> => input('destroy-ready', type, narrow)

function input<S>(kind: Input['kind'], type: ResourceType<S>, narrow: Narrow): Input<S> {
  const { namespace = type.namespace, id } = typeof narrow === 'string' ? { namespace: narrow } : narrow
  return { kind, type, namespace, id }
}

/** Writes a kind that no other controller may write. */
export const exclusive = <S>(type: ResourceType<S>, namespace: string = type.namespace): Output<S> => ({
  kind: 'exclusive',
  type,
  namespace,
})

/** Writes resources of a kind beside other controllers. */
export const shared = <S>(type: ResourceType<S>, namespace: string = type.namespace): Output<S> => ({ kind: 'shared', type, namespace })

/** Reading end of a declared input; resources on their way out are not shown. */
export interface Reader<S> {
  get(id: string): Resource<S> | undefined
  list(query?: { labels?: readonly Selector[]; id?: IdMatcher }): Resource<S>[]
}

/** Writing end of a declared output; the puts of a round take effect together after it. */
export interface Writer<S> extends Reader<S> {
  put(id: string, spec: S, extra?: { labels?: Record<string, string>; annotations?: Record<string, string> }): void
  /** Leaves what is there as it is. */
  keep(id: string): void
}

/** What every round is given beside its handles. */
export interface Round {
  readonly log: Logger
  /** Fires when the runtime stops. */
  readonly signal: AbortSignal
  readonly clock: Clock
  /** The wall clock: for time stamps and certificates. Durations are taken from `clock`. */
  readonly now: () => Date
  /**
   * Reads something that is known only now: an input for as long as every round asks for it. Strong ones are held
   * from here on and let go when a round does not ask any more.
   */
  also<S>(input: Input<S>): Reader<S>
  /** Runs another round after so many milliseconds, unless one comes before. */
  wakeIn(milliseconds: number): void
  /** Runs another round when the wall clock shows this time, also when it is stepped there. */
  wakeAt(time: Date): void
  /**
   * Keeps one task a key running for as long as every round names the key; one that is not named is aborted,
   * one that fails is logged and started again by a later round.
   */
  background(key: string, task: Task): void
}

/**
 * Work beside the rounds: `wake` asks for a round, `tell` says what cannot be done at the moment by one who goes on
 * trying by itself, and without an error that it can be done again.
 */
export type Task = (signal: AbortSignal, wake: () => void, tell: (error?: unknown) => void) => Promise<void>

type Handles<I, O> = { readonly [K in keyof I]: I[K] extends Input<infer S> ? Reader<S> : never } & {
  readonly [K in keyof O]: O[K] extends Output<infer S> ? Writer<S> : never
}

/** What a controller's `start` is given. */
export interface Outside {
  wake: () => void
  signal: AbortSignal
  log: Logger
}

/** A controller as the runtime runs it. */
export interface Controller {
  readonly name: string
  readonly inputs: Readonly<Record<string, Input>>
  readonly outputs: Readonly<Record<string, Output>>
  start?(outside: Outside): void
  reconcile(round: Round & Record<string, unknown>): void | Promise<void>
}

/**
 * Declares a controller; `reconcile` gets handles for just what is declared. What the inputs and outputs hold is inferred, so
 * the bounds leave it open.
 */
export function defineController<const I extends Record<string, Input<any>>, const O extends Record<string, Output<any>>>(declaration: {
  name: string
  inputs: I
  outputs: O
  /** Called once when the runtime starts: outside events call `wake`. */
  start?(outside: Outside): void
  reconcile(round: Round & Handles<I, O>): void | Promise<void>
}): Controller {
  return declaration as unknown as Controller
}
