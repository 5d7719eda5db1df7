/**
 * One call on a server: admitted by its roles, its messages decoded, its handler run, its replies sent no faster than
 * the caller takes them; whatever the handler throws becomes its status.
 */
import { background } from '../../cosi/background.ts'
import { type Logger, silent } from '../../cosi/log.ts'
import type { Store } from '../../cosi/store.ts'
import type { Headers } from '../../wire/http2/hpack.ts'
import { encode } from '../codec.ts'
import { endWith, frameHeader, parseTimeout, responseHeaders, sealFrame } from '../frame.ts'
import type { PeerSocket } from '../http2/output.ts'
import type { ShareLimits } from '../http2/shares.ts'
import type { Stream } from '../http2/stream.ts'
import { type Metadata, metadataOf } from '../metadata.ts'
import { type MethodShape, methodShape } from '../schema.ts'
import { RpcError, type StatusName, toRpcError } from '../status.ts'
import { admits, allRoles, type Context, type Method, type Role } from './method.ts'
import { manyRequests, oneRequest, type RequestClock } from './requests.ts'

/** Who is calling, before anything is decided. */
export interface Caller {
  readonly metadata: Metadata
  readonly socket: PeerSocket
}

/** A call as records of calls know it: who asks for what, never with what. */
export interface AdmittedCall {
  readonly method: Method
  readonly roles: ReadonlySet<Role>
  readonly metadata: Metadata
  readonly peer: string
}

/** Is notified of every call of a served method, admitted or not; must be quick. One that throws ends the call it was notified of. */
export interface CallObserver {
  began(call: AdmittedCall): void
  /** The caller may do it: called before the handler runs. */
  admitted?(call: AdmittedCall): void
  ended(call: AdmittedCall, status: StatusName | 'OK', milliseconds: number): void
}

/** What a server serves, and to whom. */
export interface ServerOptions {
  readonly methods: readonly Method[]
  readonly store: Store
  readonly log: Logger
  /** The roles a caller has. Without it they are those its `talos-role` metadata names: only for sockets that are guarded otherwise. */
  readonly roles?: (caller: Caller) => ReadonlySet<Role>
  /** Whether the machine waits for its first configuration, which opens some methods to more roles. Without it, it never does. */
  readonly inMaintenance?: () => boolean
  /** Milliseconds in which a request must be whole, when not the usual time. */
  readonly requestTime?: number
  readonly observer?: CallObserver
  /** What its clients may hold, when not as much as usual. */
  readonly shares?: ShareLimits
}

/** A server's options, and its clock. */
export interface Serving extends ServerOptions {
  readonly clock: RequestClock
}

/** The roles a caller names in its metadata. */
export function namedRoles({ metadata }: Pick<Caller, 'metadata'>): ReadonlySet<Role> {
  const named = metadata['talos-role'] ?? []
  return new Set(allRoles.filter((role) => named.includes(role)))
}

/** A method and how its messages are built. */
export interface Route {
  readonly method: Method
  readonly shape: MethodShape
}

/** The route to a method; its shape is looked up at the first call, not before it is needed. */
export function route(method: Method): () => Route {
  let found: Route | undefined
  return () => {
    found ??= { method, shape: methodShape(method.path) }
    return found
  }
}

/** Answers a call. What fails, be it the handler, the roles or an observer, ends this call and nothing else. */
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
    const reply = await call.unlessGone(handle(request, call))
    stream.respond(responseHeaders)
    stream.write(frameOf(shape, reply as object))
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
    // Ends the handler's generator too; one that never yields again must not hold this call.
    background(() => replies.return?.(), silent) // the call has its status already
  }
}

/** Frames of replies that go to many callers alike; kept for as long as the reply is. */
const frames = new WeakMap<object, Buffer | undefined>()

/** Says that a reply is sent to many callers and never changes: it is encoded once. */
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

/** Reasons that most calls end for; without a place in the program of their own, so that no call has to look it up. */
const ended = new RpcError('Canceled', 'the call has ended')
const gone = new RpcError('Canceled', 'the caller is gone')

/** Where connections come from: asking for it is a system call. */
const peers = new WeakMap<PeerSocket, string>()

function peerOf(socket: PeerSocket): string {
  let peer = peers.get(socket)
  if (peer === undefined) {
    const { remoteAddress = '', remotePort } = socket
    const host = remoteAddress.includes(':') ? `[${remoteAddress}]` : remoteAddress
    peer = remotePort === undefined ? 'unix' : `${host}:${remotePort}`
    peers.set(socket, peer)
  }
  return peer
}

/** One call while it runs: what its handler sees as context. */
class Call implements Context, AdmittedCall {
  readonly stream: Stream
  readonly method: Method
  readonly metadata: Metadata
  readonly store: Store
  readonly log: Logger
  readonly roles: ReadonlySet<Role>
  readonly clock: RequestClock
  /** There once somebody asks for the signal. */
  #abort?: AbortController
  #left?: RpcError
  readonly #inMaintenance: () => boolean
  readonly #waiting = new Set<(reason: RpcError) => void>()
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

  /** Throws unless the caller has one of the roles that open the method now. */
  admit(): void {
    if (!admits(this.method.access, this.roles, this.#inMaintenance)) throw new RpcError('PermissionDenied', 'not authorized')
    this.method.admit?.(this.metadata)
  }

  /** Waits for a value, but no longer than the caller does. */
  async unlessGone<T>(value: T | Promise<T>): Promise<T> {
    if (!(value instanceof Promise)) return value
    // Not Promise.race: it would keep a reaction for every reply of an endless stream.
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    if (this.#left) reject(this.#left)
    this.#waiting.add(reject)
    value.then(resolve, reject)
    try {
      return await promise
    } finally {
      this.#waiting.delete(reject)
    }
  }

  end(): void {
    clearTimeout(this.#deadline)
    this.clock.complete(this.stream)
    this.#leave(ended)
  }

  /** Ends the call for a reason that is not its handler's. */
  leave(reason: RpcError): void {
    this.#leave(reason)
    for (const reject of this.#waiting) reject(reason)
  }

  #leave(reason: RpcError): void {
    if (this.#left) return
    this.#left = reason
    this.#abort?.abort(reason)
  }
}
