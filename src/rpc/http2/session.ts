/**
 * One HTTP/2 connection, either end of it. RFC 9113.
 * Windows are kept for each stream and for the connection, see credit.ts and sender.ts. Priorities are ignored. What a
 * client may make us hold or do is bounded, see limits.ts. The socket's events are handed in.
 */
import { ConnectionError, type ErrorName, errorCode, errorName } from '../../wire/http2/error.ts'
import { content, defaultFrameSize, FrameReader, type FrameSink, flag, frameType, preface } from '../../wire/http2/frame.ts'
import type { Headers, OutgoingHeaders } from '../../wire/http2/hpack.ts'
import { applySettings, maxInt31, settingsFrame } from '../../wire/http2/settings.ts'
import { Credit } from './credit.ts'
import { HeaderBlocks } from './header-blocks.ts'
import * as limits from './limits.ts'
import type { Socket } from './output.ts'
import { Sender } from './sender.ts'
import type { HeldConnection, Share } from './shares.ts'
import { type Carrier, Stream, StreamError } from './stream.ts'
import { Streams } from './streams.ts'
import { type Deferred, requestCost } from './turns.ts'

/** What an end of a connection is. */
export interface SessionOptions {
  readonly side: 'client' | 'server'
  /** Of a server: a request came. */
  readonly request?: (stream: Stream, headers: Headers) => void
  /** Of a server: requests that may run at a time. */
  readonly maxStreams?: number
  /** Of a server: the client that the connection is charged to. */
  readonly share?: Share
  /** Of a server: the client that a call is charged to, when it is another than the connection's. */
  readonly shareOf?: (headers: Headers) => Share
}

const nothing = Buffer.alloc(0)

/** A connection. */
export class Session implements Carrier, FrameSink, HeldConnection, Deferred {
  readonly socket: Socket
  closed = false
  /** When anything came last, in milliseconds of the clock. */
  lastHeard = performance.now()
  readonly #server: boolean
  readonly #sender: Sender
  readonly #credit: Credit
  readonly #streams: Streams
  readonly #blocks: HeaderBlocks
  readonly #reader: FrameReader
  readonly #pings: (() => void)[] = []
  /** Bytes of the client's preface that have come. */
  #greeted = 0
  /** The other side has said its settings, so speaks HTTP/2. */
  #settled = false
  #settingsFrames = 0
  /** Bytes that wait for their client's turn. */
  readonly #unread: Buffer[] = []
  #deferred = false
  #closing = false
  #paused = false
  readonly #settlers: (() => void)[] = []
  readonly #closers: ((failure: Error | undefined) => void)[] = []

  /** Bytes that wait for the socket, as far as they are counted, and those of headers that are not whole. */
  charged = 0
  readonly #share: Share | undefined

  constructor(socket: Socket, { side, request = () => {}, maxStreams = 1000, share, shareOf }: SessionOptions) {
    this.socket = socket
    this.#share = share
    this.#server = side === 'server'
    this.#sender = new Sender(socket, (stream) => this.#streams.sent(stream))
    const { output } = this.#sender
    const charge = (bytes: number) => {
      this.charged += bytes
      share?.charge(bytes)
    }
    output.charge = charge
    this.#credit = new Credit(output)
    this.#streams = new Streams(this.#server, this.#sender, this.#credit, () => {
      if (this.#closing) queueMicrotask(() => this.#endIfDone())
      else if (!this.#server && this.size === 0) socket.unref()
    })
    this.#blocks = new HeaderBlocks({
      carrier: this,
      server: this.#server,
      streams: this.#streams,
      maxStreams,
      request,
      charge,
      shareOf: shareOf ?? (() => share),
      closing: () => this.#closing,
      received: (stream, trailers) => this.#received(stream, trailers),
    })
    // Much data comes in answers only.
    const maxFrameSize = this.#server ? defaultFrameSize : limits.maxFrame
    this.#reader = new FrameReader(this, maxFrameSize)
    if (!this.#server) {
      output.raw(preface)
      this.#greeted = preface.length
    }
    output.raw(
      settingsFrame({
        ...(this.#server ? { maxConcurrentStreams: maxStreams } : { enablePush: false }),
        initialWindowSize: limits.firstWindow,
        maxFrameSize,
        maxHeaderListSize: limits.maxHeaderList,
      }),
    )
    output.number(frameType.WINDOW_UPDATE, 0, limits.connectionWindow - limits.firstWindow)
    output.schedule()
  }

  /** Streams that are open, or wait to be. */
  get size(): number {
    return this.#streams.size
  }

  /** Whether all its streams still wait for their request. */
  get awaitsRequests(): boolean {
    return this.#streams.all().every((stream) => !stream.remoteEnded && !stream.headersSent)
  }

  /** Bytes that each of its streams may have waiting before it is full. */
  get streamRoom(): number {
    const { active } = this.#streams
    if (active * limits.streamBuffer <= limits.bufferBudget) return limits.streamBuffer
    return Math.max(limits.leastBuffer, Math.floor(limits.bufferBudget / active))
  }

  /** Ends it because its client holds too much. */
  exhaust(message: string): void {
    if (this.#server && this.size === 0 && this.charged === 0) this.close()
    else this.destroy(new Error(message))
  }

  /** Whether new streams may be opened. */
  get open(): boolean {
    return !this.closed && !this.#closing
  }

  /** Calls back at the other side's first settings. */
  whenSettled(then: () => void): void {
    if (this.#settled) then()
    else this.#settlers.push(then)
  }

  /** Calls back when the connection is gone, and why. */
  whenClosed(then: (failure: Error | undefined) => void): void {
    if (this.closed) then(undefined)
    else this.#closers.push(then)
  }

  /**
   * Opens a stream; beyond what the server takes at a time it waits for its turn. A connection without streams keeps no
   * program running.
   */
  request(headers: OutgoingHeaders): Stream {
    const stream = new Stream(this)
    stream.headersSent = true
    if (this.open && this.size === 0) this.socket.ref()
    if (this.open) this.#streams.request(stream, headers)
    else stream.finish(new StreamError('REFUSED_STREAM', 'connection is closing', true, true))
    // The next request dials anew then.
    if (this.#streams.exhausted) this.close()
    return stream
  }

  /** Asks whether the other side is there. */
  ping(answered: () => void): void {
    this.#pings.push(answered)
    this.#sender.output.frame(frameType.PING, 0, 0, Buffer.alloc(8))
    this.#sender.output.schedule()
  }

  /** Opens no more streams, and ends the connection when those there are have ended. */
  close(): void {
    if (!this.open) return
    this.#closing = true
    this.#goAway('NO_ERROR')
    this.#endIfDone()
  }

  /** Ends the connection and all its streams at once. */
  destroy(failure?: Error): void {
    if (this.closed) return
    this.gone(failure)
    this.socket.terminate()
  }

  // What the socket tells.

  /** Bytes came. */
  receive(chunk: Buffer): void {
    if (this.closed) return
    this.lastHeard = performance.now()
    if (this.#unread.length > 0) this.#unread.push(chunk)
    else this.#look(chunk)
  }

  /** Goes on with bytes that waited for their turn. */
  proceed(): void {
    while (!this.closed && this.#unread.length > 0 && !this.sated) this.#look(this.#unread.shift()!, true)
    if (this.closed || this.#unread.length > 0) return
    this.#deferred = false
    if (!this.#paused) this.socket.resume()
  }

  /** Whether its client has to let others have their turn. */
  get sated(): boolean {
    return this.#share?.portion.over ?? false
  }

  #look(chunk: Buffer, again = false): void {
    try {
      const fresh = this.#greeted < preface.length ? this.#greet(chunk) : chunk
      const taken = this.#reader.push(fresh)
      if (taken < fresh.length) this.#defer(fresh.subarray(taken))
      else if (again && this.#unread.length > 0 && this.sated) this.#share?.portion.defer(this)
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error
      this.#fail(error)
      return
    }
    if (this.#server && !this.#paused && this.#sender.output.size > limits.hardOutput) {
      // It makes us answer and does not read the answers.
      this.#paused = true
      this.socket.pause()
    }
    this.#sender.output.schedule()
  }

  /** The socket takes bytes again. */
  drained(): void {
    if (this.closed) return
    this.#sender.output.drained()
    this.#endIfDone()
    if (!this.#paused || this.#sender.output.size > limits.softOutput) return
    this.#paused = false
    if (!this.#deferred) this.socket.resume()
  }

  /** The socket is closed. */
  gone(failure?: Error): void {
    if (this.closed) return
    this.closed = true
    this.#unread.length = 0
    this.#blocks.drop()
    this.#sender.output.close()
    this.#streams.endAll(failure?.message ?? 'connection was closed')
    this.#share?.disconnect(this)
    for (const closer of this.#closers.splice(0)) closer(failure)
  }

  #defer(rest: Buffer): void {
    this.#unread.unshift(rest)
    this.#share?.portion.defer(this)
    if (this.#deferred) return
    this.#deferred = true
    this.socket.pause()
  }

  // What streams ask for.

  sendHeaders(stream: Stream, headers: OutgoingHeaders, end: boolean): void {
    this.#sender.headers(stream, headers, end)
  }

  sendData(stream: Stream, chunk: Buffer): boolean {
    return this.#sender.data(stream, chunk)
  }

  sendEnd(stream: Stream): void {
    this.#sender.end(stream)
  }

  sendReset(stream: Stream, code: ErrorName): void {
    this.#streams.leave(stream, code)
  }

  released(stream: Stream, bytes: number): void {
    this.#credit.release(stream, bytes, this.#streams.active)
  }

  // What the frames tell.

  begin(type: number, flags: number, id: number, length: number): void {
    if (!this.#settled && (type !== frameType.SETTINGS || flags & flag.ACK))
      throw new ConnectionError('PROTOCOL_ERROR', 'the first frame holds no settings')
    const { unfinished } = this.#blocks
    if (unfinished !== undefined && (type !== frameType.CONTINUATION || id !== unfinished))
      throw new ConnectionError('PROTOCOL_ERROR', 'header block is interrupted')
    if (type === frameType.DATA) this.#dataBegins(id, flags, length)
    else if (type <= frameType.RST_STREAM && id === 0) throw new ConnectionError('PROTOCOL_ERROR', 'frame without its stream')
    else if (ofConnection.has(type) && id !== 0) throw new ConnectionError('PROTOCOL_ERROR', `frame of the connection with stream ${id}`)
  }

  data(id: number, piece: Buffer, left: number, flags: number): void {
    const stream = this.#streams.get(id)
    if (stream && !stream.remoteEnded) this.#deliver(stream, piece, left === 0 && (flags & flag.END_STREAM) !== 0)
    if (left > 0) return
    this.#share?.portion.spend(1)
    this.#credit.giveBack()
  }

  frame(type: number, flags: number, id: number, payload: Buffer): void {
    this.#share?.portion.spend(type === frameType.HEADERS ? requestCost : 1)
    if (type === frameType.HEADERS) {
      if (flags & flag.PRIORITY) this.#dependency(id, payload.subarray(flags & flag.PADDED ? 1 : 0))
      this.#blocks.headers(id, flags, payload)
    } else if (type === frameType.WINDOW_UPDATE) this.#windowUpdate(id, payload)
    else if (type === frameType.DATA) this.#paddedData(id, flags, payload)
    else if (type === frameType.PING) this.#ping(flags, payload)
    else if (type === frameType.SETTINGS) this.#settings(flags, payload)
    else if (type === frameType.RST_STREAM) this.#resetByPeer(id, payload)
    else if (type === frameType.CONTINUATION) this.#blocks.continuation(flags, payload)
    else if (type === frameType.GOAWAY) this.#goneAway(payload)
    else if (type === frameType.PRIORITY) this.#priority(id, payload)
    else if (type === frameType.PUSH_PROMISE) throw new ConnectionError('PROTOCOL_ERROR', 'nobody asked for pushed streams')
    // Kinds of frames that we do not know have no meaning.
    else this.#idleFrame()
  }

  #greet(chunk: Buffer): Buffer {
    const take = Math.min(chunk.length, preface.length - this.#greeted)
    if (chunk.compare(preface, this.#greeted, this.#greeted + take, 0, take) !== 0)
      throw new ConnectionError('PROTOCOL_ERROR', 'client does not speak HTTP/2')
    this.#greeted += take
    return chunk.subarray(take)
  }

  #dataBegins(id: number, flags: number, length: number): void {
    if (length === 0 && (flags & flag.END_STREAM) === 0) this.#idleFrame()
    this.#credit.take(length)
    const streams = this.#streams
    const stream = streams.get(id)
    if (stream?.remoteEnded) streams.breakOff(stream, 'STREAM_CLOSED', 'bytes after the end')
    else if (stream) {
      stream.receiveWindow -= length
      if (stream.receiveWindow < 0) streams.breakOff(stream, 'FLOW_CONTROL_ERROR', 'more bytes than the window of the stream')
    } else if (streams.isIdle(id)) throw new ConnectionError('PROTOCOL_ERROR', `DATA of stream ${id}, which was never opened`)
    else if (this.#server && !streams.brokenByUs(id)) streams.refuse(id, 'STREAM_CLOSED')
  }

  #deliver(stream: Stream, piece: Buffer, end: boolean): void {
    if (!this.#server && !stream.answered) {
      this.#streams.breakOff(stream, 'PROTOCOL_ERROR', 'bytes before the headers')
      return
    }
    if (stream.expected >= 0) {
      stream.expected -= piece.length
      if (stream.expected < 0 || (end && stream.expected > 0)) {
        this.#streams.breakOff(stream, 'PROTOCOL_ERROR', 'content-length is not the length of the content')
        return
      }
    }
    if (end) stream.remoteEnded = true
    if (piece.length > 0) {
      this.#credit.hold(stream, piece.length)
      stream.arrivedData(piece)
    }
    if (end) this.#received(stream, undefined)
  }

  #paddedData(id: number, flags: number, payload: Buffer): void {
    const piece = content(frameType.DATA, flags, payload)
    const stream = this.#streams.get(id)
    // The padding is held by nobody.
    if (stream) this.#credit.giveBackPadding(stream, payload.length - piece.length)
    this.data(id, piece, 0, flags)
  }

  /** The other side of a stream is said. */
  #received(stream: Stream, trailers: Headers | undefined): void {
    if (stream.closed) return
    stream.arrived({ trailers })
    if (stream.localEnded) this.#streams.complete(stream)
  }

  #priority(id: number, payload: Buffer): void {
    this.#idleFrame()
    const stream = this.#streams.get(id)
    if (payload.length === 5) this.#dependency(id, payload)
    else if (stream) this.#streams.breakOff(stream, 'FRAME_SIZE_ERROR', 'PRIORITY of a wrong length')
    else this.#streams.refuse(id, 'FRAME_SIZE_ERROR')
  }

  #dependency(id: number, payload: Buffer): void {
    if (payload.length < 5) throw new ConnectionError('FRAME_SIZE_ERROR', 'priority is cut off')
    if ((payload.readUInt32BE(0) & maxInt31) !== id) return
    const stream = this.#streams.get(id)
    if (!stream) throw new ConnectionError('PROTOCOL_ERROR', `stream ${id} depends on itself`)
    this.#streams.breakOff(stream, 'PROTOCOL_ERROR', 'stream depends on itself')
  }

  #resetByPeer(id: number, payload: Buffer): void {
    sized('RST_STREAM', payload, 4)
    if (this.#streams.isIdle(id)) throw new ConnectionError('PROTOCOL_ERROR', `RST_STREAM of stream ${id}, which was never opened`)
    const stream = this.#streams.get(id)
    if (!stream) {
      this.#idleFrame()
      return
    }
    const code = errorName(payload.readUInt32BE(0))
    this.#streams.countReset()
    this.#streams.remove(stream, false)
    // A server that has said all may ask us to stop saying more: that is no failure.
    if (code === 'NO_ERROR' && stream.remoteEnded) stream.finish()
    else stream.finish(new StreamError(code, `stream was broken off: ${code}`, true, code === 'REFUSED_STREAM'))
  }

  #settings(flags: number, payload: Buffer): void {
    if (flags & flag.ACK) {
      sized('acknowledgement of settings', payload, 0)
      return
    }
    this.#idleFrame()
    if (this.#server && ++this.#settingsFrames > limits.maxSettings) throw new ConnectionError('ENHANCE_YOUR_CALM', 'too many settings')
    const { peer } = this.#sender
    const before = peer.initialWindowSize
    applySettings(peer, payload)
    this.#sender.resizeTable()
    this.#sender.output.frame(frameType.SETTINGS, flag.ACK, 0, nothing)
    if (!this.#sender.rebased(before, () => this.#streams.all()))
      throw new ConnectionError('FLOW_CONTROL_ERROR', 'settings make a window too large')
    if (!this.#settled && !this.#server && this.size === 0) this.socket.unref()
    this.#settled = true
    for (const then of this.#settlers.splice(0)) then()
    this.#streams.startWaiting()
  }

  #ping(flags: number, payload: Buffer): void {
    sized('PING', payload, 8)
    if (flags & flag.ACK) {
      this.#pings.shift()?.()
      return
    }
    this.#idleFrame()
    this.#sender.output.frame(frameType.PING, flag.ACK, 0, payload)
  }

  #goneAway(payload: Buffer): void {
    if (payload.length < 8) throw new ConnectionError('FRAME_SIZE_ERROR', 'GOAWAY is cut off')
    this.#closing = true
    if (!this.#server) this.#streams.endAfter(payload.readUInt32BE(0) & maxInt31, `server goes away: ${errorName(payload.readUInt32BE(4))}`)
    this.#endIfDone()
  }

  #windowUpdate(id: number, payload: Buffer): void {
    sized('WINDOW_UPDATE', payload, 4)
    const bytes = payload.readUInt32BE(0) & maxInt31
    if (id === 0) {
      if (bytes === 0) throw new ConnectionError('PROTOCOL_ERROR', 'window is widened by nothing')
      if (!this.#sender.widen(bytes)) throw new ConnectionError('FLOW_CONTROL_ERROR', 'window is too large')
      return
    }
    const stream = this.#streams.get(id)
    if (!stream && this.#streams.isIdle(id))
      throw new ConnectionError('PROTOCOL_ERROR', `WINDOW_UPDATE of stream ${id}, which was never opened`)
    if (!stream) return
    if (bytes === 0) this.#streams.breakOff(stream, 'PROTOCOL_ERROR', 'window is widened by nothing')
    else if (!this.#sender.widenStream(stream, bytes)) this.#streams.breakOff(stream, 'FLOW_CONTROL_ERROR', 'window is too large')
  }

  /** A frame that moves no call: one may send a good many of them, but not forever. */
  #idleFrame(): void {
    if (++this.#sender.idleFrames > limits.maxIdleFrames)
      throw new ConnectionError('ENHANCE_YOUR_CALM', 'too many frames that move no call')
  }

  #fail(error: ConnectionError): void {
    this.#goAway(error.code, error.message)
    this.#sender.output.flush()
    this.gone(error)
    this.#hangUp()
  }

  #goAway(code: ErrorName, message = ''): void {
    const payload = Buffer.alloc(8 + message.length)
    payload.writeUInt32BE(this.#streams.last, 0)
    payload.writeUInt32BE(errorCode[code], 4)
    payload.write(message, 8, 'latin1')
    this.#sender.output.frame(frameType.GOAWAY, 0, 0, payload)
    this.#sender.output.schedule()
  }

  #endIfDone(): void {
    if (!this.#closing || this.closed || this.size > 0) return
    this.#sender.output.flush()
    // What the socket did not take yet goes when it has drained.
    if (this.#sender.output.size > 0) return
    this.gone()
    this.#hangUp()
  }

  /** What a client sends meanwhile must not make the kernel throw away what we said last: so it is still read for a while. */
  #hangUp(): void {
    if (!this.#server) {
      this.socket.end()
      return
    }
    this.socket.shutdown()
    setTimeout(() => this.socket.terminate(), limits.lingerTime).unref()
  }
}

const ofConnection: ReadonlySet<number> = new Set([frameType.SETTINGS, frameType.PING, frameType.GOAWAY])

function sized(what: string, payload: Buffer, size: number): void {
  if (payload.length !== size) throw new ConnectionError('FRAME_SIZE_ERROR', `${what} of ${payload.length} bytes`)
}
