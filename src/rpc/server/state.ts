/**
 * The resource API over a store: Get, List and Watch; write methods exist on the wire and are always refused.
 * A watch starts with an empty response, which confirms that it is established.
 */
import { StoreError } from '../../cosi/errors.ts'
import type { Resource, ResourceType } from '../../cosi/resource.ts'
import type { StoreEvent, WatchOptions } from '../../cosi/store-table.ts'
import { cosi as enums } from '../enums.ts'
import type { cosi } from '../messages.ts'
import { toMessage, tombstone } from '../resource-message.ts'
import { RpcError } from '../status.ts'
import { forMany } from './call.ts'
import { type Access, type Context, type Init, type Method, readers, serverStream, unary } from './method.ts'
import { queryOf } from './query.ts'
import type { ResourceAccess } from './resource-access.ts'

type Event = Init<cosi.resource.Event>
type Response = Init<cosi.resource.WatchResponse>

const { EventType } = enums.resource

/**
 * The methods of cosi.resource.State. `callers` is the access to the methods; `access` decides on each resource. Writes are
 * refused unless methods for them are given, which only a private server may do.
 */
export function stateMethods(
  access: ResourceAccess,
  callers: Access = readers,
  writing: readonly Method[] = refusedWrites(callers),
): Method[] {
  const admitted = (request: { type: string; namespace: string; id?: string | undefined }, context: Context): [ResourceType, string] => {
    const type = context.store.type(request.type)
    const namespace = request.namespace || type?.namespace || ''
    const refusal = access({ type, namespace, ...(request.id !== undefined && { id: request.id }) }, context)
    if (refusal || !type) throw new RpcError('PermissionDenied', `${refusal ?? 'unknown resource type'}: "${namespace}/${request.type}"`)
    return [type, namespace]
  }

  return [
    unary('cosi.resource.State/Get', callers, (request, context) => {
      const [type, namespace] = admitted(request, context)
      const resource = context.store.get(type, request.id, { namespace })
      if (!resource) throw new RpcError('NotFound', `resource "${namespace}/${type.type}/${request.id}" does not exist`)
      return { resource: toMessage(viewOf(type, context)(resource)) }
    }),
    serverStream('cosi.resource.State/List', callers, async function* ({ options, ...request }, context) {
      const [type, namespace] = admitted(request, context)
      const view = viewOf(type, context)
      for (const resource of context.store.list(type, { namespace, ...queryOf(options, context) }))
        yield { resource: toMessage(view(resource)) }
    }),
    serverStream('cosi.resource.State/Watch', callers, async function* (request, context) {
      const [type, namespace] = admitted(request, context)
      yield* watch(type, namespace, request, context)
    }),
    ...writing,
  ]
}

function refusedWrites(callers: Access): Method[] {
  const writers = callers === 'anyone' ? callers : (['os:admin'] as const)
  const refuse = (): never => {
    throw new RpcError('PermissionDenied', 'resources are not written through the API')
  }
  return [
    unary('cosi.resource.State/Create', writers, refuse),
    unary('cosi.resource.State/Update', writers, refuse),
    unary('cosi.resource.State/Destroy', writers, refuse),
  ]
}

async function* watch(
  type: ResourceType,
  namespace: string,
  request: cosi.resource.WatchRequest,
  context: Context,
): AsyncGenerator<Response, void> {
  const { store, signal } = context
  const view = viewOf(type, context)
  const options = watchOptions(request, namespace, context)
  const absent = tombstone(namespace, type.type, '')
  const events = store.watch(type, { ...options, signal })
  // The generator takes its position at the first call of next(), so that is called before the contents are read.
  let next = events.next()
  next.catch(() => {})
  try {
    const present = store.get(type, request.id ?? '', { namespace })
    const first = beginning(type, namespace, request, options, present && view(present), store.bookmark(type, namespace))
    yield {}
    if (first) yield { event: [first] }
    // An aggregated watch gets all contents in one response.
    let gathered: Event[] | undefined = request.options?.aggregated && options.bootstrap ? [] : undefined
    for (;;) {
      const { value: event, done } = await next
      if (done) return
      const value = eventFor(view, event)
      next = events.next()
      next.catch(() => {})
      gathered?.push(eventMessage(value, absent))
      if (gathered && value.type !== 'bootstrapped') continue
      yield gathered ? { event: gathered } : responseOf(value, absent)
      gathered = undefined
    }
  } catch (error) {
    if (!(error instanceof StoreError && error.reason === 'overrun') || request.apiVersion < 1) throw error
    yield { event: [{ eventType: EventType.ERRORED, error: error.message }] }
  } finally {
    events.return().catch(() => {}) // the store ended it, and the watcher was notified
  }
}

function watchOptions({ id, options }: cosi.resource.WatchRequest, namespace: string, context: Context): WatchOptions {
  const bookmark = options?.startFromBookmark
  const tail = options?.tailEvents ?? 0
  if (options?.bootstrapContents && (tail > 0 || bookmark))
    throw new RpcError('InvalidArgument', 'a watch begins with the contents, the last events or a bookmark: choose one')
  if (tail > 0 && bookmark) throw new RpcError('InvalidArgument', 'a watch begins with the last events or a bookmark: choose one')
  if (id !== undefined && options?.bootstrapContents)
    throw new RpcError('Unimplemented', 'a watch of one resource has no bootstrap contents')
  return {
    namespace,
    ...queryOf(options, context),
    ...(id !== undefined && { only: id }),
    ...(options?.bootstrapContents && { bootstrap: true }),
    ...(tail > 0 && { tail }),
    ...(bookmark && { after: readBookmark(bookmark) }),
  }
}

/** What precedes the events: the current state of the one resource, or only a bookmark. */
function beginning(
  type: ResourceType,
  namespace: string,
  { id, options }: cosi.resource.WatchRequest,
  { tail, after }: WatchOptions,
  resource: Resource | undefined,
  position: number,
): Event | undefined {
  if (id !== undefined && tail === undefined && after === undefined) {
    return resource
      ? { eventType: EventType.CREATED, resource: toMessage(resource) }
      : { eventType: EventType.DESTROYED, resource: tombstone(namespace, type.type, id) }
  }
  return options?.bootstrapBookmark
    ? { eventType: EventType.NOOP, resource: tombstone(namespace, type.type, ''), bookmark: writeBookmark(position) }
    : undefined
}

type View = (resource: Resource) => Resource

const redactedResources = new WeakMap<Resource, Resource>()
const redactedEvents = new WeakMap<StoreEvent, StoreEvent>()
const whole: View = (resource) => resource

/** The view of a caller on resources of a type. */
function viewOf(type: ResourceType, { roles }: Context): View {
  if (!type.redacted || roles.has('os:admin')) return whole
  return (resource) => remembered(redactedResources, resource, ({ metadata, spec }) => ({ metadata, spec: type.redacted?.(spec) }))
}

/** All callers with the same view share one event object, so that it is encoded once. */
function eventFor(view: View, event: StoreEvent): StoreEvent {
  if (view === whole || event.type === 'bootstrapped') return event
  return remembered(redactedEvents, event, () =>
    event.type === 'updated'
      ? { ...event, resource: view(event.resource), old: view(event.old) }
      : { ...event, resource: view(event.resource) },
  )
}

function remembered<T extends object>(known: WeakMap<T, T>, key: T, make: (key: T) => T): T {
  let made = known.get(key)
  if (!made) {
    made = make(key)
    known.set(key, made)
  }
  return made
}

const responses = new WeakMap<StoreEvent, Response>()

/** The response with an event: all watchers of its type get the same. */
function responseOf(event: StoreEvent, absent: Event['resource']): Response {
  let response = responses.get(event)
  if (!response) {
    response = forMany({ event: [eventMessage(event, absent)] })
    responses.set(event, response)
  }
  return response
}

/** Initial contents have no bookmark of their own: only their end, the event `absent`, is a position to resume from. */
function eventMessage(event: StoreEvent, absent: Event['resource']): Event {
  const bookmark = writeBookmark(event.bookmark)
  switch (event.type) {
    case 'created':
      return { eventType: EventType.CREATED, resource: toMessage(event.resource), ...(!event.present && { bookmark }) }
    case 'updated':
      return { eventType: EventType.UPDATED, resource: toMessage(event.resource), old: toMessage(event.old), bookmark }
    case 'destroyed':
      return { eventType: EventType.DESTROYED, resource: toMessage(event.resource), bookmark }
    case 'bootstrapped':
      return { eventType: EventType.BOOTSTRAPPED, resource: absent, bookmark }
  }
}

/** Eight random bytes distinguish bookmarks of different runs of this program. */
const run = crypto.getRandomValues(Buffer.alloc(8))

function writeBookmark(position: number): Buffer {
  const bookmark = Buffer.alloc(16)
  run.copy(bookmark)
  bookmark.writeBigInt64BE(BigInt(position), 8)
  return bookmark
}

function readBookmark(bytes: Uint8Array): number {
  const bookmark = Buffer.from(bytes)
  if (bookmark.length !== 16 || !bookmark.subarray(0, 8).equals(run))
    throw new RpcError('FailedPrecondition', 'the bookmark is of another run: list and watch again')
  return Number(bookmark.readBigInt64BE(8))
}
