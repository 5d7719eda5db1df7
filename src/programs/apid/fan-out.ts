/** One call to several backends, their replies merged into one answer; a backend that fails is a part of it, not its end. */
import { endWith, FrameReader, frameHeader, parseTimeout, responseHeaders, sealFrame, statusOf } from '../../rpc/frame.ts'
import type { Stream } from '../../rpc/http2/stream.ts'
import type { MethodShape } from '../../rpc/schema.ts'
import { oneMessage, type RequestClock } from '../../rpc/server/requests.ts'
import { RpcError, toRpcError } from '../../rpc/status.ts'
import { within } from '../../timing/within.ts'
import type { Headers } from '../../wire/http2/hpack.ts'
import { failedMessage, failedReply, markMessage, markReply } from './merge.ts'
import type { Way } from './upstream.ts'

/** One of the backends of a call. */
export interface Backend {
  /** As the caller named it: what its replies are marked with. */
  readonly node: string
  readonly upstream: Way
  readonly headers: Headers
}

/** Milliseconds before the caller's deadline, a fifth of it at most, at which the answer goes out without the nodes that are silent. */
const margin = 1000

type Answer = (call: Stream, backend: Backend) => Promise<void>

/** A unary call: one reply with all messages, in the order the nodes were named. */
export async function gather(caller: Stream, backends: readonly Backend[], shape: MethodShape, clock: RequestClock): Promise<void> {
  const replies = new Map<Backend, Buffer>()
  let kept = 0
  await each(caller, backends, shape, clock, {
    answer: async (call, backend) => {
      const messages: Buffer[] = []
      await messagesOf(caller, call, async (message) => {
        messages.push(message)
      })
      const [reply] = messages
      if (!reply || messages.length !== 1) throw new RpcError('Internal', `${messages.length} replies to a call that has one`)
      replies.set(backend, markReply(reply, backend.node))
      // They wait for those of other nodes, at the expense of the caller.
      kept += reply.length
      caller.charge(reply.length)
    },
    failed: async (backend, error) => {
      replies.set(backend, failedReply(backend.node, error))
    },
  })
  if (caller.closed) return
  caller.charge(-kept)
  const reply = Buffer.concat([Buffer.alloc(frameHeader), ...backends.map((backend) => replies.get(backend) ?? Buffer.alloc(0))])
  caller.respond(responseHeaders)
  caller.write(sealFrame(reply))
  endWith(caller)
}

/** A streaming call: messages as they come, each marked; the slowest reader is the caller. */
export async function interleave(caller: Stream, backends: readonly Backend[], shape: MethodShape, clock: RequestClock): Promise<void> {
  const send = async (frame: Buffer) => {
    caller.respond(responseHeaders)
    if (!caller.write(sealFrame(frame))) await drained(caller)
  }
  await each(caller, backends, shape, clock, {
    answer: (call, { node }) => messagesOf(caller, call, (message) => send(markMessage(message, node, frameHeader))),
    failed: ({ node }, error) => send(failedMessage(node, error, frameHeader)),
  })
  caller.respond(responseHeaders)
  endWith(caller)
}

interface Outcome {
  answer: Answer
  failed(backend: Backend, error: RpcError): Promise<void>
}

async function each(
  caller: Stream,
  backends: readonly Backend[],
  shape: MethodShape,
  clock: RequestClock,
  { answer, failed }: Outcome,
): Promise<void> {
  const calls = new Set<Stream>()
  caller.whenClosed(() => {
    for (const call of calls) call.reset()
  })
  const request = shape.clientStreams ? undefined : await wholeRequest(caller, shape.requestLimit, clock)
  const open = async (backend: Backend) => {
    const session = await backend.upstream.connection()
    if (caller.closed) throw new RpcError('Canceled', 'the caller is gone')
    const call = session.request(backend.headers)
    calls.add(call)
    if (request) call.end(request)
    return call
  }
  const opened = backends.map((backend) => ({ backend, opening: open(backend) }))
  const sent = request
    ? undefined
    : broadcast(
        caller,
        opened.map(({ opening }) => opening),
      )
  await Promise.all(
    opened.map(async ({ backend, opening }) => {
      try {
        await inTime(shape, backend, async () => {
          const call = await opening
          await answer(call, backend)
          calls.delete(call)
        })
      } catch (error) {
        opening.then(
          (call) => call.reset(),
          () => {}, // what failed to open needs no reset
        )
        await failed(backend, toRpcError(error))
      }
    }),
  )
  await sent
}

/** Runs the call to one backend of a unary call, so long that the caller still gets the replies of the others. */
function inTime(shape: MethodShape, { headers }: Backend, run: () => Promise<void>): Promise<void> {
  const timeout = parseTimeout(headers['grpc-timeout'])
  if (timeout === undefined || shape.serverStreams) return run()
  const limit = timeout - Math.min(margin, timeout / 5)
  return within(run(), limit, () => new RpcError('DeadlineExceeded', `no answer within ${Math.round(limit)} ms`))
}

/** The frame with the request, which every backend gets; measured and timed as the backends would. */
async function wholeRequest(caller: Stream, limit: number, clock: RequestClock): Promise<Buffer> {
  const { promise: gone, reject } = Promise.withResolvers<never>()
  caller.whenClosed(() => {
    clock.complete(caller)
    reject(new RpcError('Canceled', 'the caller is gone'))
  })
  const message = await Promise.race([oneMessage(caller, clock, limit), gone])
  return sealFrame(Buffer.concat([Buffer.alloc(frameHeader), message]))
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

/** Hands on each message of a backend's answer; throws the status it ends with. The caller is charged for what is not whole. */
async function messagesOf(caller: Stream, call: Stream, take: (message: Buffer) => Promise<void>): Promise<void> {
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
      caller.charge(piece.length)
      for (const message of frames.push(piece)) {
        await take(message)
        caller.charge(-message.length - frameHeader)
      }
      call.release(piece.length)
    } else if (ended || call.closed) break
    else
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }
  const stated = ending && statusOf(ending)
  if (stated) throw stated
  if (!ended && call.failure?.code === 'ENHANCE_YOUR_CALM')
    throw new RpcError('ResourceExhausted', 'too much of the answer waits to be read')
  if (!ended) throw new RpcError('Unavailable', `backend connection: ${call.failure?.message ?? 'lost'}`)
  if (!ending) throw new RpcError('Unavailable', 'backend ended the call without a status')
  frames.end()
}

function drained(stream: Stream): Promise<void> {
  return new Promise((resolve) => stream.drained(resolve))
}
