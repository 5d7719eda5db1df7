/** One call to several backends, their replies merged into one answer; a backend that fails is a part of it, not its end. */
import { endWith, FrameReader, frameHeader, maxMessage, responseHeaders, sealFrame, statusOf } from '../../rpc/frame.ts'
import type { Stream } from '../../rpc/http2/stream.ts'
import { RpcError, toRpcError } from '../../rpc/status.ts'
import type { Headers } from '../../wire/http2/hpack.ts'
import { failedMessage, failedReply, markMessage, markReply } from './merge.ts'
import type { Upstream } from './upstream.ts'

/** One of the backends of a call. */
export interface Backend {
  /** As the caller named it: what its replies are marked with. */
  readonly node: string
  readonly upstream: Upstream
  readonly headers: Headers
}

type Answer = (call: Stream, backend: Backend) => Promise<void>

/** A unary call: one reply with all messages, in the order the nodes were named. */
export async function gather(caller: Stream, backends: readonly Backend[], clientStreams: boolean): Promise<void> {
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
  if (caller.closed) return
  const reply = Buffer.concat([Buffer.alloc(frameHeader), ...backends.map((backend) => replies.get(backend) ?? Buffer.alloc(0))])
  caller.respond(responseHeaders)
  caller.write(sealFrame(reply))
  endWith(caller)
}

/** A streaming call: messages as they come, each marked; the slowest reader is the caller. */
export async function interleave(caller: Stream, backends: readonly Backend[], clientStreams: boolean): Promise<void> {
  const send = async (frame: Buffer) => {
    caller.respond(responseHeaders)
    if (!caller.write(sealFrame(frame))) await drained(caller)
  }
  await each(caller, backends, clientStreams, {
    answer: (call, { node }) => messagesOf(call, (message) => send(markMessage(message, node, frameHeader))),
    failed: ({ node }, error) => send(failedMessage(node, error, frameHeader)),
  })
  caller.respond(responseHeaders)
  endWith(caller)
}

interface Outcome {
  answer: Answer
  failed(backend: Backend, error: RpcError): Promise<void>
}

async function each(caller: Stream, backends: readonly Backend[], clientStreams: boolean, { answer, failed }: Outcome): Promise<void> {
  const calls = new Set<Stream>()
  caller.whenClosed(() => {
    for (const call of calls) call.reset()
  })
  const request = clientStreams ? undefined : await wholeRequest(caller)
  const opened = backends.map(async (backend) => {
    // Replies are cut into messages here, so they must come uncompressed.
    const session = await backend.upstream.connection()
    if (caller.closed) throw new RpcError('Canceled', 'the caller is gone')
    const call = session.request({ ...backend.headers, 'grpc-accept-encoding': 'identity' })
    calls.add(call)
    if (request) call.end(request)
    return call
  })
  const sent = request ? undefined : broadcast(caller, opened)
  await Promise.all(
    backends.map(async (backend, at) => {
      let call: Stream | undefined
      try {
        call = await opened[at]!
        await answer(call, backend)
        calls.delete(call)
      } catch (error) {
        call?.reset()
        await failed(backend, toRpcError(error))
      }
    }),
  )
  await sent
}

async function wholeRequest(caller: Stream): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of caller.chunks()) {
    chunks.push(chunk)
    size += chunk.length
    if (size > maxMessage + frameHeader) throw new RpcError('ResourceExhausted', `request is larger than the limit of ${maxMessage} bytes`)
  }
  return Buffer.concat(chunks)
}

/** The caller's bytes to every backend that is there, at the pace of the slowest. */
async function broadcast(caller: Stream, opened: readonly Promise<Stream>[]): Promise<void> {
  const settled = await Promise.allSettled(opened)
  const calls = settled.filter((result) => result.status === 'fulfilled').map(({ value }) => value)
  for await (const chunk of caller.chunks()) {
    const waits = calls.filter((call) => !call.write(chunk)).map(drained)
    if (waits.length > 0) await Promise.all(waits)
  }
  for (const call of calls) call.end()
}

/** Hands on each message of a backend's answer; throws the status it ends with. */
async function messagesOf(call: Stream, take: (message: Buffer) => Promise<void>): Promise<void> {
  const frames = new FrameReader()
  const pieces: Buffer[] = []
  let ending: Headers | undefined
  let ended = false
  let wake = () => {}
  call.read({
    headers(headers) {
      if (headers['grpc-status'] !== undefined) ending = headers
    },
    data(piece) {
      pieces.push(piece)
      wake()
    },
    end(trailers) {
      ended = true
      if (trailers) ending = trailers
      wake()
    },
  })
  call.whenClosed(() => wake())
  for (;;) {
    const piece = pieces.shift()
    if (piece) {
      for (const message of frames.push(piece)) await take(message)
      call.release(piece.length)
    } else if (ended || call.closed) break
    else
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }
  const stated = ending && statusOf(ending)
  if (stated) throw stated
  if (!ended) throw new RpcError('Unavailable', `backend connection: ${call.failure?.message ?? 'lost'}`)
  if (!ending) throw new RpcError('Unavailable', 'backend ended the call without a status')
  frames.end()
}

function drained(stream: Stream): Promise<void> {
  return new Promise((resolve) => stream.drained(resolve))
}
