/** One call to several backends, their replies merged into one answer; a backend that fails is a part of it, not its end. */
import http2, { type ClientHttp2Stream, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { drained } from '../../rpc/drained.ts'
import { FrameReader, frameHeader, maxMessage, sealFrame, statusOf, statusTrailers } from '../../rpc/frame.ts'
import { RpcError, toRpcError } from '../../rpc/status.ts'
import { failedMessage, failedReply, markMessage, markReply } from './merge.ts'
import type { Upstream } from './upstream.ts'

/** One of the backends of a call. */
export interface Backend {
  /** As the caller named it: what its replies are marked with. */
  readonly node: string
  readonly upstream: Upstream
  readonly headers: OutgoingHttpHeaders
}

type Answer = (call: ClientHttp2Stream, backend: Backend) => Promise<void>

/** A unary call: one reply with all messages, in the order the nodes were named. */
export async function gather(caller: ServerHttp2Stream, backends: readonly Backend[], clientStreams: boolean): Promise<void> {
  const replies = new Map<Backend, Buffer>()
  await each(caller, backends, clientStreams, {
    answer: async (call, backend) => {
      const messages: Buffer[] = []
      await messagesOf(call, async (message) => void messages.push(message))
      if (messages.length !== 1) throw new RpcError('Internal', `${messages.length} replies to a call that has one`)
      replies.set(backend, markReply(messages[0]!, backend.node))
    },
    failed: async (backend, error) => void replies.set(backend, failedReply(backend.node, error)),
  })
  if (caller.destroyed) return
  const reply = Buffer.concat([Buffer.alloc(frameHeader), ...backends.map((backend) => replies.get(backend) ?? Buffer.alloc(0))])
  finish(caller, sealFrame(reply))
}

/** A streaming call: messages as they come, each marked; the slowest reader is the caller. */
export async function interleave(caller: ServerHttp2Stream, backends: readonly Backend[], clientStreams: boolean): Promise<void> {
  const send = async (frame: Buffer) => {
    if (caller.destroyed) return
    if (!caller.headersSent) caller.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    if (!caller.write(sealFrame(frame))) await drained(caller)
  }
  await each(caller, backends, clientStreams, {
    answer: (call, { node }) => messagesOf(call, (message) => send(markMessage(message, node, frameHeader))),
    failed: ({ node }, error) => send(failedMessage(node, error, frameHeader)),
  })
  if (!caller.destroyed) finish(caller)
}

interface Outcome {
  answer: Answer
  failed(backend: Backend, error: RpcError): Promise<void>
}

async function each(
  caller: ServerHttp2Stream,
  backends: readonly Backend[],
  clientStreams: boolean,
  { answer, failed }: Outcome,
): Promise<void> {
  const calls = new Set<ClientHttp2Stream>()
  caller.on('close', () => {
    for (const call of calls) call.close(http2.constants.NGHTTP2_CANCEL)
  })
  const request = clientStreams ? undefined : await wholeRequest(caller)
  const opened = backends.map(async (backend) => {
    // Replies are cut into messages here, so they must come uncompressed.
    const session = await backend.upstream.connection()
    if (caller.destroyed) throw new RpcError('Canceled', 'the caller is gone')
    const call = session.request({ ...backend.headers, 'grpc-accept-encoding': 'identity' })
    call.on('error', () => {})
    calls.add(call)
    if (request) call.end(request)
    return call
  })
  const sent = request ? undefined : broadcast(caller, opened)
  await Promise.all(
    backends.map(async (backend, at) => {
      let call: ClientHttp2Stream | undefined
      try {
        call = await opened[at]!
        await answer(call, backend)
        calls.delete(call)
      } catch (error) {
        call?.close(http2.constants.NGHTTP2_CANCEL)
        await failed(backend, toRpcError(error))
      }
    }),
  )
  await sent
}

async function wholeRequest(caller: ServerHttp2Stream): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of caller.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk as Buffer)
    size += (chunk as Buffer).length
    if (size > maxMessage + frameHeader) throw new RpcError('ResourceExhausted', `request is larger than the limit of ${maxMessage} bytes`)
  }
  return Buffer.concat(chunks)
}

/** The caller's bytes to every backend that is there, at the pace of the slowest. */
async function broadcast(caller: ServerHttp2Stream, opened: readonly Promise<ClientHttp2Stream>[]): Promise<void> {
  const settled = await Promise.allSettled(opened)
  const calls = settled.filter((result) => result.status === 'fulfilled').map(({ value }) => value)
  for await (const chunk of caller.iterator({ destroyOnReturn: false })) {
    const waits = calls.filter((call) => !call.destroyed && !call.write(chunk)).map(drained)
    if (waits.length > 0) await Promise.all(waits)
  }
  for (const call of calls) call.end()
}

/** Hands on each message of a backend's answer; throws the status it ends with. */
async function messagesOf(call: ClientHttp2Stream, take: (message: Buffer) => Promise<void>): Promise<void> {
  const frames = new FrameReader()
  let ending: Record<string, unknown> | undefined
  call.on('response', (headers) => {
    if (headers['grpc-status'] !== undefined) ending = headers
  })
  call.on('trailers', (trailers) => {
    ending = trailers
  })
  try {
    for await (const chunk of call.iterator({ destroyOnReturn: false }))
      for (const message of frames.push(chunk as Buffer)) await take(message)
  } catch (error) {
    if (error instanceof RpcError) throw error
    const stated = ending && statusOf(ending)
    throw stated ?? new RpcError('Unavailable', `backend connection: ${(error as Error).message}`)
  }
  const failure = ending ? statusOf(ending) : new RpcError('Unavailable', 'backend ended the call without a status')
  if (failure) throw failure
  frames.end()
}

function finish(caller: ServerHttp2Stream, last?: Buffer): void {
  if (!caller.headersSent) caller.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  caller.once('wantTrailers', () => caller.sendTrailers(statusTrailers()))
  caller.end(last)
}
