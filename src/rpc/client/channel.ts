/**
 * Calls to a server over one HTTP/2 connection, opened at the first call and reopened after it was lost.
 * Every call has a deadline unless it is disabled; a response without a status counts as a failure.
 */

import { background } from '../../cosi/background.ts'
import { silent } from '../../cosi/log.ts'
import { timerDelay } from '../../timing/timer.ts'
import type { OutgoingHeaders } from '../../wire/http2/hpack.ts'
import { encode } from '../codec.ts'
import { formatTimeout, frameHeader, sealFrame } from '../frame.ts'
import type { Session } from '../http2/session.ts'
import type { Methods } from '../messages.ts'
import { type MethodShape, methodShape } from '../schema.ts'
import type { Init } from '../server/method.ts'
import { RpcError } from '../status.ts'
import { Call, type CallOptions } from './call.ts'
import { dial, type Target } from './dial.ts'
import { type KeepaliveTimes, keepAlive } from './keepalive.ts'

/** Options for all calls of a channel. */
export interface ChannelOptions {
  /** Sent with every call. */
  readonly metadata?: CallOptions['metadata']
  /** Connect timeout in milliseconds. */
  readonly connectTimeout?: number
  /** When servers behind a network are pinged. */
  readonly keepalive?: KeepaliveTimes
}

type Path<Kind> = { [P in keyof Methods]: Methods[P]['kind'] extends Kind ? P : never }[keyof Methods]
type Request<P extends keyof Methods> = Init<Methods[P]['request']>
type Reply<P extends keyof Methods> = Methods[P]['reply']

/** A client of a server. All calls throw RpcError. */
export interface Channel {
  unary<P extends Path<'unary'>>(path: P, request: Request<P>, options?: CallOptions): Promise<Reply<P>>
  /** Leaving the loop early cancels the call. */
  serverStream<P extends Path<'server'>>(path: P, request: Request<P>, options?: CallOptions): AsyncGenerator<Reply<P>, void>
  clientStream<P extends Path<'client'>>(
    path: P,
    requests: Iterable<Request<P>> | AsyncIterable<Request<P>>,
    options?: CallOptions,
  ): Promise<Reply<P>>
  bidi<P extends Path<'bidi'>>(
    path: P,
    requests: Iterable<Request<P>> | AsyncIterable<Request<P>>,
    options?: CallOptions,
  ): AsyncGenerator<Reply<P>, void>
  close(): void
}

const defaultDeadline = 30_000

/** Opens a channel; nothing is sent before the first call. With several addresses the first that answers is kept. */
export function connect(target: Target | readonly Target[], options: ChannelOptions = {}): Channel {
  return new HttpChannel([target].flat() as Target[], options)
}

class HttpChannel implements Channel {
  readonly #targets: readonly Target[]
  readonly #options: ChannelOptions
  #session?: Session
  #dialing?: Promise<Session> | undefined
  #closed = false

  constructor(targets: readonly Target[], options: ChannelOptions) {
    this.#targets = targets
    this.#options = options
  }

  async unary<P extends Path<'unary'>>(path: P, request: Request<P>, options: CallOptions = {}): Promise<Reply<P>> {
    const shape = methodShape(path)
    const call = await this.#start(shape, { deadline: defaultDeadline, ...options })
    call.stream.end(sealFrame(encode(shape.request, request as object, frameHeader)))
    return (await only(call.replies())) as Reply<P>
  }

  async *serverStream<P extends Path<'server'>>(path: P, request: Request<P>, options: CallOptions = {}): AsyncGenerator<Reply<P>, void> {
    const shape = methodShape(path)
    const call = await this.#start(shape, options)
    call.stream.end(sealFrame(encode(shape.request, request as object, frameHeader)))
    yield* call.replies() as AsyncGenerator<Reply<P>, void>
  }

  async clientStream<P extends Path<'client'>>(
    path: P,
    requests: Iterable<Request<P>> | AsyncIterable<Request<P>>,
    options: CallOptions = {},
  ): Promise<Reply<P>> {
    const call = await this.#start(methodShape(path), { deadline: defaultDeadline, ...options })
    background(call.send(requests as AsyncIterable<object>), silent) // a failure ends the call itself
    return (await only(call.replies())) as Reply<P>
  }

  async *bidi<P extends Path<'bidi'>>(
    path: P,
    requests: Iterable<Request<P>> | AsyncIterable<Request<P>>,
    options: CallOptions = {},
  ): AsyncGenerator<Reply<P>, void> {
    const call = await this.#start(methodShape(path), options)
    background(call.send(requests as AsyncIterable<object>), silent) // a failure ends the call itself
    yield* call.replies() as AsyncGenerator<Reply<P>, void>
  }

  close(): void {
    this.#closed = true
    this.#session?.close()
    this.#dialing?.then(
      (session) => session.close(),
      () => {},
    )
  }

  async #start(shape: MethodShape, options: CallOptions): Promise<Call> {
    if (options.signal?.aborted) throw new RpcError('Canceled', `call "${shape.path}": canceled`)
    const session = await this.#connected(options)
    const headers: OutgoingHeaders = {
      ':method': 'POST',
      ':scheme': 'http',
      ':path': shape.path,
      ':authority': 'localhost',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...this.#options.metadata,
      ...options.metadata,
      ...(options.deadline && { 'grpc-timeout': formatTimeout(options.deadline) }),
    }
    return new Call(session.request(headers), shape, options)
  }

  /** All calls without a connection wait for the same one. */
  async #connected(options: CallOptions): Promise<Session> {
    if (this.#closed) throw new RpcError('Canceled', 'channel is closed')
    const known = this.#session
    if (known?.open) return known
    this.#dialing ??= this.#dial().finally(() => {
      this.#dialing = undefined
    })
    this.#session = await withinDeadline(this.#dialing, options)
    return this.#session
  }

  async #dial(): Promise<Session> {
    const { connectTimeout: timeout = 20_000, keepalive } = this.#options
    let failure: unknown
    for (const target of this.#targets) {
      try {
        const session = await dial(target, { timeout })
        // The kernel reports the end of a program on this machine.
        if (!('unix' in target)) keepAlive(session, keepalive)
        return session
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }
}

/** Waits for a connection within the deadline of a call. */
function withinDeadline<T>(connection: Promise<T>, { deadline, signal }: CallOptions): Promise<T> {
  if (!deadline && !signal) return connection
  return new Promise((resolve, reject) => {
    const late = () => reject(new RpcError('DeadlineExceeded', `no connection within ${deadline} ms`))
    const timer = deadline ? setTimeout(late, timerDelay(deadline)) : undefined
    const abort = () => reject(new RpcError('Canceled', 'canceled while connecting'))
    signal?.addEventListener('abort', abort)
    connection.then(resolve, reject).finally(() => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    })
  })
}

async function only(replies: AsyncGenerator<object, void>): Promise<object> {
  let reply: object | undefined
  for await (const next of replies) {
    if (reply) throw new RpcError('Internal', 'more than one reply to a call that has one')
    reply = next
  }
  if (!reply) throw new RpcError('Internal', 'the reply is missing')
  return reply
}
