/**
 * The single source of truth: a table per (namespace, type), each with a ring of its most recent events. Every change is
 * one synchronous step, so readers never see half of it. Subscribers are called within the step. Watchers read the ring at
 * their own pace and get an error when they have fallen behind.
 */
import { StoreError } from './errors.ts'
import { annotated, same } from './labels.ts'
import { type Metadata, type Phase, parseSpec, type Resource, type ResourceType } from './resource.ts'
import { asSeen, byId, type Query, type Scope, type StoreEvent, selected, Table, type WatchOptions, watchTable } from './store-table.ts'
import { untilMatches } from './until.ts'

/** Options of a write. */
export interface WriteOptions extends Scope {
  owner?: string | undefined
  labels?: Record<string, string>
  annotations?: Record<string, string>
  /** The version the writer has read; the write fails with a conflict when the resource has another one. */
  version?: number
}

const none: Readonly<Record<string, string>> = Object.freeze({})

const unheld: readonly string[] = Object.freeze([])

type Target = Pick<ResourceType, 'type' | 'namespace'>

/** The store of all resources. */
export class Store {
  /** By type, then by namespace. */
  readonly #tables = new Map<string, Map<string, Table>>()
  readonly #types = new Map<string, ResourceType>()
  readonly #now: () => Date
  readonly #subscriberFailed: (error: unknown) => void

  /** `subscriberFailed` receives what a subscriber throws; without it that is an uncaught exception. */
  constructor(options: { now?: () => Date; subscriberFailed?: (error: unknown) => void } = {}) {
    this.#now = options.now ?? (() => new Date())
    this.#subscriberFailed =
      options.subscriberFailed ??
      ((error) =>
        queueMicrotask(() => {
          throw error
        }))
  }

  /** Registers resource types, so that they can be looked up by name. Registering two types of one name is refused. */
  register(...types: readonly ResourceType<never>[] | readonly ResourceType[]): void {
    for (const type of types as readonly ResourceType[]) {
      const known = this.#types.get(type.type)
      if (known && known !== type) throw new StoreError('exists', `resource type "${type.type}" is declared twice`)
      this.#types.set(type.type, type)
    }
  }

  /** Every registered type. */
  types(): ResourceType[] {
    return [...this.#types.values()]
  }

  /** The type with this full name. */
  type(name: string): ResourceType | undefined {
    return this.#types.get(name)
  }

  /** Every resource of every type and namespace. */
  all(): Resource[] {
    return [...this.#tables.values()].flatMap((tables) => [...tables.values()].flatMap(({ resources }) => [...resources.values()]))
  }

  /** Per type: the number of resources, of watchers and of changes. */
  usage(): { type: string; namespace: string; resources: number; watchers: number; changes: number }[] {
    return [...this.#tables].flatMap(([type, tables]) =>
      [...tables].map(([namespace, { resources, subscribers, next }]) => ({
        type,
        namespace,
        resources: resources.size,
        watchers: subscribers.size,
        changes: next,
      })),
    )
  }

  get<S>(type: ResourceType<S>, id: string, { namespace = type.namespace }: Scope = {}): Resource<S> | undefined {
    return this.#tables.get(type.type)?.get(namespace)?.resources.get(id) as Resource<S> | undefined
  }

  /** Resources of a type, sorted by id. */
  list<S>(type: ResourceType<S>, query: Query = {}): Resource<S>[] {
    const table = this.#tables.get(type.type)?.get(query.namespace ?? type.namespace)
    if (!table) return []
    const all = [...table.resources.values()] as Resource<S>[]
    const found = query.labels || query.id ? all.filter((resource) => selected(resource, query)) : all
    return found.sort(byId)
  }

  /** Adds a resource. Throws StoreError 'exists' or 'invalid'. */
  create<S>(type: ResourceType<S>, id: string, spec: S, options: WriteOptions = {}): Resource<S> {
    const { namespace = type.namespace, owner = '', labels = none, annotations = none } = options
    const table = this.#table(type, namespace)
    if (table.resources.has(id)) throw new StoreError('exists', `create "${name(type, namespace, id)}": it already exists`)
    const time = this.#now()
    const metadata: Metadata = {
      namespace,
      type: type.type,
      id,
      version: 1,
      owner,
      phase: 'running',
      created: time,
      updated: time,
      labels,
      annotations: annotated(type, annotations),
      finalizers: unheld,
    }
    const resource: Resource<S> = { metadata, spec: parseSpec(type, id, spec) }
    table.resources.set(id, resource)
    table.emit({ type: 'created', resource, bookmark: table.next++ })
    return resource
  }

  /** Changes a spec. Throws StoreError 'not-found', 'owner', 'conflict', 'phase' or 'invalid'; equal contents change nothing. */
  update<S>(type: ResourceType<S>, id: string, spec: S | ((old: S) => S), options: WriteOptions = {}): Resource<S> {
    return this.#update(type, id, spec, options, options.labels, options.annotations)
  }

  /**
   * Replaces everything that a writer may set on a resource in one step: spec, labels, annotations, finalizers and phase. Its
   * version must be the one the writer has read, and is incremented each time. Throws as `update` does; 'phase' also when
   * the resource would return from teardown to running.
   */
  replace<S>(type: ResourceType<S>, next: Resource<S>, options: { owner?: string; expectedPhase?: Phase | undefined } = {}): Resource<S> {
    const { id, namespace, labels, annotations, finalizers, phase, version } = next.metadata
    const old = this.#owned(type, id, { namespace, owner: options.owner })
    const refuse = (reason: 'conflict' | 'phase', why: string) => {
      throw new StoreError(reason, `update "${name(type, namespace, id)}": ${why}`)
    }
    if (version !== old.metadata.version) refuse('conflict', `it is at version ${old.metadata.version}, not ${version}`)
    if (options.expectedPhase && options.expectedPhase !== old.metadata.phase) refuse('phase', `it is ${old.metadata.phase}`)
    if (old.metadata.phase !== 'running' && phase === 'running') refuse('phase', 'it is being torn down')
    return this.#replace(type, old, { labels, annotations, finalizers: [...new Set(finalizers)], phase }, parseSpec(type, id, next.spec))
  }

  /** Creates or updates a resource. */
  put<S>(type: ResourceType<S>, id: string, spec: S, options: WriteOptions = {}): Resource<S> {
    return this.get(type, id, options)
      ? this.#update(type, id, spec, options, options.labels ?? none, options.annotations ?? none)
      : this.create(type, id, spec, options)
  }

  /** Starts the teardown; returns true when no finalizer is left. */
  teardown(type: ResourceType<never> | ResourceType, id: string, options: Scope & { owner?: string | undefined } = {}): boolean {
    const old = this.#owned(type as ResourceType, id, options)
    const torn = old.metadata.phase === 'running' ? this.#replace(type as ResourceType, old, { phase: 'tearingDown' }) : old
    return torn.metadata.finalizers.length === 0
  }

  /** Removes a resource. Throws StoreError 'finalizers' while a finalizer is left. */
  destroy(type: ResourceType<never> | ResourceType, id: string, options: Scope & { owner?: string | undefined } = {}): void {
    const resource = this.#owned(type as ResourceType, id, options)
    const { namespace, finalizers } = resource.metadata
    if (finalizers.length > 0)
      throw new StoreError('finalizers', `destroy "${name(type, namespace, id)}": still held by ${finalizers.join(', ')}`)
    const table = this.#table(type, namespace)
    table.resources.delete(id)
    table.emit({ type: 'destroyed', resource, bookmark: table.next++ })
  }

  /** Adds a finalizer. Throws StoreError 'phase' when the resource is already being torn down. */
  addFinalizer(type: ResourceType<never> | ResourceType, id: string, finalizer: string, options: Scope = {}): void {
    const old = this.#found(type as ResourceType, id, options)
    if (old.metadata.finalizers.includes(finalizer)) return
    if (old.metadata.phase !== 'running')
      throw new StoreError('phase', `hold "${name(type, old.metadata.namespace, id)}": it is being torn down`)
    this.#replace(type as ResourceType, old, { finalizers: [...old.metadata.finalizers, finalizer] })
  }

  /** Removes a finalizer. */
  removeFinalizer(type: ResourceType<never> | ResourceType, id: string, finalizer: string, options: Scope = {}): void {
    const old = this.get(type as ResourceType, id, options)
    if (!old?.metadata.finalizers.includes(finalizer)) return
    this.#replace(type as ResourceType, old, { finalizers: old.metadata.finalizers.filter((held) => held !== finalizer) })
  }

  /** Calls back within every change, in order; the callback must not throw. Returns the function that unsubscribes. */
  subscribe<S>(type: ResourceType<S>, callback: (event: StoreEvent<S>) => void, options: WatchOptions = {}): () => void {
    const table = this.#table(type, options.namespace ?? type.namespace)
    for (const event of table.beginning(options)) callback(event as StoreEvent<S>)
    const subscriber = (event: StoreEvent) => {
      const seen = asSeen(event, options)
      if (seen) callback(seen as StoreEvent<S>)
    }
    table.subscribers.add(subscriber)
    return () => table.subscribers.delete(subscriber)
  }

  /**
   * Yields every event in order, for readers with their own pace. A reader that falls behind by more than the ring holds gets
   * StoreError 'overrun', so memory stays bounded.
   */
  watch<S>(type: ResourceType<S>, options: WatchOptions & { signal?: AbortSignal } = {}): AsyncGenerator<StoreEvent<S>, void> {
    const table = this.#table(type, options.namespace ?? type.namespace)
    return watchTable(table, type.type, options) as AsyncGenerator<StoreEvent<S>, void>
  }

  /** The bookmark of the last event of a type; -1 before the first. */
  bookmark(type: Target, namespace: string = type.namespace): number {
    return (this.#tables.get(type.type)?.get(namespace)?.next ?? 0) - 1
  }

  /** Waits until a resource exists and matches. Rejects with the signal's reason when it is aborted first. */
  until<S>(
    type: ResourceType<S>,
    id: string,
    predicate: (resource: Resource<S>) => boolean = () => true,
    { signal, namespace = type.namespace }: Scope & { signal?: AbortSignal | undefined } = {},
  ): Promise<Resource<S>> {
    return untilMatches(this, type, id, predicate, { signal, namespace })
  }

  #table(type: Target, namespace: string): Table {
    const tables = this.#tables.get(type.type) ?? new Map<string, Table>()
    if (tables.size === 0) this.#tables.set(type.type, tables)
    const known = tables.get(namespace)
    if (known) return known
    const table = new Table(this.#subscriberFailed)
    tables.set(namespace, table)
    return table
  }

  #found<S>(type: ResourceType<S>, id: string, { namespace = type.namespace }: Scope): Resource<S> {
    const resource = this.get(type, id, { namespace })
    if (!resource) throw new StoreError('not-found', `resource "${name(type, namespace, id)}" does not exist`)
    return resource
  }

  #owned<S>(type: ResourceType<S>, id: string, options: Scope & { owner?: string | undefined }): Resource<S> {
    const resource = this.#found(type, id, options)
    const { owner, namespace } = resource.metadata
    if (owner !== (options.owner ?? ''))
      throw new StoreError('owner', `change "${name(type, namespace, id)}": it is owned by "${owner}", not by "${options.owner ?? ''}"`)
    return resource
  }

  #update<S>(
    type: ResourceType<S>,
    id: string,
    spec: S | ((old: S) => S),
    options: WriteOptions,
    givenLabels: Metadata['labels'] | undefined,
    givenAnnotations: Metadata['annotations'] | undefined,
  ): Resource<S> {
    const old = this.#owned(type, id, options)
    const { metadata } = old
    if (options.version !== undefined && options.version !== metadata.version)
      throw new StoreError(
        'conflict',
        `update "${name(type, metadata.namespace, id)}": it is at version ${metadata.version}, not ${options.version}`,
      )
    if (metadata.phase !== 'running') throw new StoreError('phase', `update "${name(type, metadata.namespace, id)}": it is being torn down`)
    const given = typeof spec === 'function' ? (spec as (old: S) => S)(old.spec) : spec
    const labels = givenLabels ?? metadata.labels
    const annotations = givenAnnotations ? annotated(type, givenAnnotations) : metadata.annotations
    const unmoved = same(labels, metadata.labels) && same(annotations, metadata.annotations)
    // Most rounds put what is there already, which has been parsed.
    if (unmoved && Bun.deepEquals(given, old.spec)) return old
    const next = parseSpec(type, id, given)
    return unmoved && Bun.deepEquals(next, old.spec) ? old : this.#replace(type, old, { labels, annotations }, next)
  }

  #replace<S>(
    type: ResourceType<S>,
    old: Resource<S>,
    changes: Partial<Pick<Metadata, 'phase' | 'labels' | 'annotations' | 'finalizers'>>,
    spec: S = old.spec,
  ): Resource<S> {
    const { namespace, id, version, owner, phase, created, labels, annotations, finalizers } = old.metadata
    const metadata: Metadata = {
      namespace,
      type: type.type,
      id,
      version: version + 1,
      owner,
      phase: changes.phase ?? phase,
      created,
      updated: this.#now(),
      labels: changes.labels ?? labels,
      annotations: changes.annotations ? annotated(type, changes.annotations) : annotations,
      finalizers: changes.finalizers ?? finalizers,
    }
    const resource: Resource<S> = { metadata, spec }
    const table = this.#table(type, metadata.namespace)
    table.resources.set(metadata.id, resource)
    table.emit({ type: 'updated', resource, old, bookmark: table.next++ })
    return resource
  }
}

function name(type: Target, namespace: string, id: string): string {
  return `${namespace}/${type.type}/${id}`
}
