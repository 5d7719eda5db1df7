/**
 * One call on a server: checks roles, decodes requests, runs the handler, and sends replies no faster than the caller reads
 * them. Whatever the handler throws becomes the status of the call.
 */

import { background } from '../../cosi/background.ts'
import { type Logger, silent } from '../../cosi/log.ts'
import type { Store } from '../../cosi/store.ts'
import { formatHostPort } from '../../wire/host-port.ts'
import type { Headers } from '../../wire/http2/hpack.ts'
import { allRoles, type Role } from '../../wire/x509/roles.ts'
import { encode } from '../codec.ts'
import { endWith, frameHeader, parseTimeout, responseHeaders, sealFrame, statusTrailers } from '../frame.ts'
import type { ShareLimits } from '../http2/holder.ts'
import type { PeerSocket } from '../http2/output.ts'
import type { Stream } from '../http2/stream.ts'
import { type Metadata, metadataOf } from '../metadata.ts'
import { type MethodShape, methodShape } from '../schema.ts'
import { RpcError, type StatusName, toRpcError } from '../status.ts'
import { admits, type Context, type Method } from './method.ts'
import { manyRequests, oneRequest, type RequestClock } from './requests.ts'

/** The caller, before authorization. */
export interface Caller {
  readonly metadata: Metadata
  readonly socket: PeerSocket
}

/** A call as recorded: caller and method, never its contents. */
export interface AdmittedCall {
  readonly method: Method
  readonly roles: ReadonlySet<Role>
  readonly metadata: Metadata
  readonly peer: string
}

/** Observes every call of a served method, admitted or not; must be fast. An observer that throws ends the call. */
export interface CallObserver {
  began(call: AdmittedCall): void
  /** The caller is authorized: called before the handler runs. */
  admitted?(call: AdmittedCall): void
  ended(call: AdmittedCall, status: StatusName | 'OK', milliseconds: number): void
}

/** Options of a server. */
export interface ServerOptions {
  readonly methods: readonly Method[]
  readonly store: Store
  readonly log: Logger
  /** The roles of a caller. Default: those in its `talos-role` metadata, for sockets that are protected in another way. */
  readonly roles?: (caller: Caller) => ReadonlySet<Role>
  /** Whether the machine waits for its first configuration, or for this very call, which opens some methods to more roles. Default: it never does. */
  readonly inMaintenance?: (path: Method['path']) => boolean
  /** Milliseconds until a request must be complete, when not the default. */
  readonly requestTime?: number
  readonly observer?: CallObserver
  /** What clients may hold, when not the default. */
  readonly shares?: ShareLimits
}

/** The options of a server, and its clock. */
export interface Serving extends ServerOptions {
  readonly clock: RequestClock
}

/** The roles that a caller claims in its metadata. */
export function namedRoles({ metadata }: Pick<Caller, 'metadata'>): ReadonlySet<Role> {
  const named = metadata['talos-role'] ?? []
  return new Set(allRoles.filter((role) => named.includes(role)))
}

/** A method and the shape of its messages. */
export interface Route {
  readonly method: Method
  readonly shape: MethodShape
}

/** The route to a method; its shape is looked up at the first call. */
export function route(method: Method): () => Route {
  let found: Route | undefined
  return () => {
    found ??= { method, shape: methodShape(method.path) }
    return found
  }
}

/** Answers a call. A failure of the handler, the roles or an observer ends this call and nothing else. */
export async function answer(stream: Stream, headers: Headers, route: Route, serving: Serving): Promise<void> {
  const { observer, log } = serving
  const began = observer ? performance.now() : 0
  let call: Call | undefined
  let status: StatusName | 'OK' = 'OK'
  try {
    call = new Call(stream, headers, route.method, serving)
    observer?.began(call)
    call.admit()
    observer?.admitted?.(call)
    await run(call, route)
    endWith(stream)
  } catch (error) {
    const failure = call?.left ?? toRpcError(error)
    status = failure.status
    if (failure.status === 'Unknown') log.warn('method failed', { method: route.method.path, error: failure })
    endWith(stream, failure)
  } finally {
    call?.end()
    if (call) observer?.ended(call, status, performance.now() - began)
  }
}

async function run(call: Call, { method, shape }: Route): Promise<void> {
  const { stream, clock } = call
  const handle = method.handle as (request: unknown, context: Context) => unknown
  const request = shape.clientStreams
    ? manyRequests(stream, clock, shape, (reason) => call.leave(reason))
    : await call.unlessGone(oneRequest(stream, clock, shape))
  if (!shape.serverStreams) {
    const frame = frameOf(shape, (await call.unlessGone(handle(request, call))) as object)
    // Headers, message and trailers in one turn are one write, and wake each hop on the way once.
    stream.respond(responseHeaders)
    stream.end(frame, statusTrailers())
    return
  }
  const replies = (handle(request, call) as AsyncIterable<object>)[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await call.unlessGone(replies.next())
      if (next.done) return
      stream.respond(responseHeaders)
      if (!stream.write(frameOf(shape, next.value))) await call.unlessGone(new Promise<void>((resolve) => stream.drained(resolve)))
    }
  } finally {
    // Ends the handler's generator too; one that never yields again must not block this call.
    background(() => replies.return?.(), silent) // the call has its status already
  }
}

/** Encoded replies that are sent to many callers; cached as long as the reply object exists. */
const frames = new WeakMap<object, Buffer | undefined>()

/** Marks a reply that is sent to many callers and never changes, so that it is encoded only once. */
export function forMany<Reply extends object>(reply: Reply): Reply {
  frames.set(reply, undefined)
  return reply
}

function frameOf({ reply: type }: MethodShape, reply: object): Buffer {
  const known = frames.get(reply)
  if (known) return known
  const frame = sealFrame(encode(type, reply, frameHeader))
  if (frames.has(reply)) frames.set(reply, frame)
  return frame
}

const never = () => false

/** The most common reasons for the end of a call; created once, to avoid a stack trace for each call. */
const ended = new RpcError('Canceled', 'the call has ended')
const gone = new RpcError('Canceled', 'the caller is gone')

/** The peer of a connection; looking it up is a system call. */
const peers = new WeakMap<PeerSocket, string>()

function peerOf(socket: PeerSocket): string {
  let peer = peers.get(socket)
  if (peer === undefined) {
    const { remoteAddress = '', remotePort } = socket
    peer = remotePort === undefined ? 'unix' : formatHostPort(remoteAddress, remotePort)
    peers.set(socket, peer)
  }
  return peer
}

/** A running call: the context of its handler. */
class Call implements Context, AdmittedCall {
  readonly stream: Stream
  readonly method: Method
  readonly metadata: Metadata
  readonly store: Store
  readonly log: Logger
  readonly roles: ReadonlySet<Role>
  readonly clock: RequestClock
  /** Created when the signal is first used. */
  #abort?: AbortController
  #left?: RpcError
  readonly #inMaintenance: (path: Method['path']) => boolean
  /** Rejects what the call waits for. */
  #waiting: ((reason: RpcError) => void) | undefined
  #deadline?: ReturnType<typeof setTimeout>

  constructor(stream: Stream, headers: Headers, method: Method, serving: Serving) {
    const { store, log, roles = namedRoles, inMaintenance = never, clock } = serving
    this.stream = stream
    this.method = method
    this.metadata = metadataOf(headers)
    this.store = store
    this.log = log
    this.#inMaintenance = inMaintenance
    this.clock = clock
    this.roles = roles({ metadata: this.metadata, socket: stream.connection.socket })
    stream.whenClosed(() => this.leave(gone))
    const timeout = parseTimeout(headers['grpc-timeout'])
    if (timeout !== undefined)
      this.#deadline = setTimeout(() => this.leave(new RpcError('DeadlineExceeded', 'deadline exceeded')), Math.min(timeout, 0x7fff_ffff))
  }

  get signal(): AbortSignal {
    if (!this.#abort) {
      this.#abort = new AbortController()
      if (this.#left) this.#abort.abort(this.#left)
    }
    return this.#abort.signal
  }

  /** Why the call is over, if it is. */
  get left(): RpcError | undefined {
    return this.#left
  }

  get peer(): string {
    return peerOf(this.stream.connection.socket)
  }

  get client(): object {
    return this.stream.share ?? this.stream.connection
  }

  hold(bytes: number): void {
    this.stream.charge(bytes)
  }

  /** Throws unless one of the caller's roles opens the method now. */
  admit(): void {
    if (!admits(this.method.access, this.roles, () => this.#inMaintenance(this.method.path)))
      throw new RpcError('PermissionDenied', 'not authorized')
    this.method.admit?.(this.metadata)
  }

  /** Waits for a value, but no longer than the caller does. One value at a time. */
  unlessGone<T>(value: T | Promise<T>): T | Promise<T> {
    if (!(value instanceof Promise)) return value
    // Not Promise.race: it would keep a reaction for every reply of an endless stream.
    return new Promise<T>((resolve, reject) => {
      if (this.#left) reject(this.#left)
      this.#waiting = reject
      value.then(resolve, reject)
    })
  }

  end(): void {
    clearTimeout(this.#deadline)
    this.clock.complete(this.stream)
    this.#leave(ended)
  }

  /** Ends the call for a reason outside of its handler. */
  leave(reason: RpcError): void {
    this.#leave(reason)
    this.#waiting?.(reason)
  }

  #leave(reason: RpcError): void {
    if (this.#left) return
    this.#left = reason
    this.#abort?.abort(reason)
  }
}
