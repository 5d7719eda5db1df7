/**
 * One call on a server: admitted by its roles, its messages decoded, its handler run, its replies sent no faster than
 * the caller takes them; whatever the handler throws becomes its status.
 */
import type { Logger } from '../../cosi/log.ts'
import type { Store } from '../../cosi/store.ts'
import type { Headers } from '../../wire/http2/hpack.ts'
import { decode, encode } from '../codec.ts'
import { endWith, FrameReader, frameHeader, parseTimeout, responseHeaders, sealFrame } from '../frame.ts'
import type { PeerSocket } from '../http2/output.ts'
import type { Stream } from '../http2/stream.ts'
import { type Metadata, metadataOf } from '../metadata.ts'
import { type MethodShape, methodShape } from '../schema.ts'
import { RpcError, type StatusName, toRpcError } from '../status.ts'
import { allRoles, type Context, type Method, type Role } from './method.ts'

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

/** Is told of every call of a method there is, admitted or not; must be quick, and must not throw. */
export interface CallObserver {
  began(call: AdmittedCall): void
  ended(call: AdmittedCall, status: StatusName | 'OK', milliseconds: number): void
}

/** What a server serves, and to whom. */
export interface ServerOptions {
  readonly methods: readonly Method[]
  readonly store: Store
  readonly log: Logger
  /** The roles a caller has. Without it they are those its `talos-role` metadata names: only for sockets that are guarded otherwise. */
  readonly roles?: (caller: Caller) => ReadonlySet<Role>
  readonly observer?: CallObserver
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

/** Answers a call; never throws. */
export async function answer(stream: Stream, headers: Headers, route: Route, options: ServerOptions): Promise<void> {
  const { observer } = options
  const call = new Call(stream, headers, route.method, options)
  const began = observer ? performance.now() : 0
  let status: StatusName | 'OK' = 'OK'
  observer?.began(call)
  try {
    call.admit()
    await run(call, route)
    endWith(stream)
  } catch (error) {
    const failure = call.signal.aborted ? toRpcError(call.signal.reason) : toRpcError(error)
    status = failure.status
    if (failure.status === 'Unknown') options.log.warn('method failed', { method: route.method.path, error: failure })
    endWith(stream, failure)
  } finally {
    call.end()
    observer?.ended(call, status, performance.now() - began)
  }
}

async function run(call: Call, { method, shape }: Route): Promise<void> {
  const { stream } = call
  const handle = method.handle as (request: unknown, context: Context) => unknown
  const request = shape.clientStreams ? requests(call, shape) : decode(shape.request, await single(call))
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
    void replies.return?.()?.catch(() => {})
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

/** The request of a call that has just one. */
function single(call: Call): Promise<Buffer> {
  const { stream } = call
  const frames = new FrameReader()
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  let message: Buffer | undefined
  stream.read({
    data(piece) {
      try {
        for (const next of frames.push(piece)) {
          if (message) throw new RpcError('Internal', 'more than one request for a method that takes one')
          message = next
        }
        stream.release(piece.length)
      } catch (error) {
        reject(error)
      }
    },
    end() {
      if (message) resolve(message)
      else reject(new RpcError('Internal', 'the request is missing'))
    },
  })
  return call.unlessGone(promise)
}

async function* requests(call: Call, { request }: MethodShape): AsyncGenerator<object, void> {
  const frames = new FrameReader()
  for await (const chunk of call.stream.chunks()) for (const message of frames.push(chunk)) yield decode(request, message)
  frames.end()
}

/** One call while it runs: what its handler sees as context. */
class Call implements Context, AdmittedCall {
  readonly stream: Stream
  readonly method: Method
  readonly metadata: Metadata
  readonly store: Store
  readonly log: Logger
  readonly roles: ReadonlySet<Role>
  readonly #abort = new AbortController()
  readonly #waiting = new Set<(reason: RpcError) => void>()
  #deadline?: ReturnType<typeof setTimeout>

  constructor(stream: Stream, headers: Headers, method: Method, { store, log, roles }: ServerOptions) {
    this.stream = stream
    this.method = method
    this.metadata = metadataOf(headers)
    this.store = store
    this.log = log
    this.roles = (roles ?? namedRoles)({ metadata: this.metadata, socket: stream.connection.socket })
    stream.whenClosed(() => this.#leave(new RpcError('Canceled', 'the caller is gone')))
    const timeout = parseTimeout(headers['grpc-timeout'])
    if (timeout !== undefined)
      this.#deadline = setTimeout(() => this.#leave(new RpcError('DeadlineExceeded', 'deadline exceeded')), Math.min(timeout, 0x7fff_ffff))
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get peer(): string {
    const { remoteAddress = '', remotePort } = this.stream.connection.socket
    return remotePort === undefined
      ? 'unix'
      : remoteAddress.includes(':')
        ? `[${remoteAddress}]:${remotePort}`
        : `${remoteAddress}:${remotePort}`
  }

  /** Throws unless the caller has one of the roles the method asks for. */
  admit(): void {
    const { access } = this.method
    if (access !== 'anyone' && !access.some((role) => this.roles.has(role))) throw new RpcError('PermissionDenied', 'not authorized')
  }

  /** Waits for a value, but no longer than the caller does. */
  async unlessGone<T>(value: T | Promise<T>): Promise<T> {
    if (!(value instanceof Promise)) return value
    // Not Promise.race: it would keep a reaction for every reply of an endless stream.
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    if (this.signal.aborted) reject(this.signal.reason)
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
    this.#abort.abort(new RpcError('Canceled', 'the call has ended'))
  }

  #leave(reason: RpcError): void {
    this.#abort.abort(reason)
    for (const reject of this.#waiting) reject(reason)
  }
}
