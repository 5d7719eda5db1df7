/**
 * One HTTP/2 connection, client or server side. RFC 9113.
 * Flow control per stream and per connection: see credit.ts and sender.ts. Priorities are ignored. Bounds on what a client
 * can make this process hold or do: see limits.ts. The socket's events are passed in.
 */
import { ConnectionError, type ErrorName, errorCode, errorName } from '../../wire/http2/error.ts'
import { content, defaultFrameSize, FrameReader, type FrameSink, flag, frameType, preface } from '../../wire/http2/frame.ts'
import type { Headers, OutgoingHeaders } from '../../wire/http2/hpack.ts'
import { applySettings, maxInt31, settingsFrame } from '../../wire/http2/settings.ts'
import { Credit } from './credit.ts'
import { HeaderBlocks } from './header-blocks.ts'
import type { HeldConnection } from './holder.ts'
import * as limits from './limits.ts'
import type { Socket } from './output.ts'
import { Sender } from './sender.ts'
import type { Share } from './shares.ts'
import { type Carrier, Stream, StreamError } from './stream.ts'
import { Streams } from './streams.ts'
import { type Deferred, requestCost } from './turns.ts'

/** Options of a connection. */
export interface SessionOptions {
  readonly side: 'client' | 'server'
  /** Server: a request has arrived. */
  readonly request?: (stream: Stream, headers: Headers) => void
  /** Server: concurrent requests. */
  readonly maxStreams?: number
  /** Server: the client that the connection is charged to. */
  readonly share?: Share
  /** Server: the client that a call is charged to, when it differs from the connection's. */
  readonly shareOf?: (headers: Headers) => Share
}

const nothing = Buffer.alloc(0)
/** What gRPC servers write into the GOAWAY of an orderly end; clients of machines that restart look for it in the error. */
const gracefulStop = 'graceful_stop'
/** Bytes of a server's debug data that an error shows. */
const farewellSize = 100

/** A connection. */
export class Session implements Carrier, FrameSink, HeldConnection, Deferred {
  readonly socket: Socket
  closed = false
  /** When the last bytes arrived, in milliseconds of the clock. */
  lastHeard = performance.now()
  readonly #server: boolean
  readonly #sender: Sender
  readonly #credit: Credit
  readonly #streams: Streams
  readonly #blocks: HeaderBlocks
  readonly #reader: FrameReader
  readonly #pings: (() => void)[] = []
  /** Client: how the server announced the end of the connection. */
  #farewell = ''
  /** Bytes of the client preface received so far. */
  #greeted = 0
  /** The peer has sent its first SETTINGS, so it speaks HTTP/2. */
  #settled = false
  #settingsFrames = 0
  /** Bytes that wait for their client's turn. */
  readonly #unread: Buffer[] = []
  /** Too many of them wait, so the socket is not read. */
  #behind = false
  #closing = false
  #paused = false
  readonly #settlers: (() => void)[] = []
  readonly #closers: ((failure: Error | undefined) => void)[] = []

  /** Bytes that wait for the socket, as far as they are charged, and those of incomplete header blocks. */
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
    // Bulk data arrives in responses only.
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

  /** The number of open and queued streams. */
  get size(): number {
    return this.#streams.size
  }

  /** Whether all its streams still wait for their request. */
  get awaitsRequests(): boolean {
    return this.#streams.all().every((stream) => !stream.remoteEnded && !stream.headersSent)
  }

  /** Bytes that each of its streams may buffer before it is full. */
  get streamRoom(): number {
    const { active } = this.#streams
    if (active * limits.streamBuffer <= limits.bufferBudget) return limits.streamBuffer
    return Math.max(limits.leastBuffer, Math.floor(limits.bufferBudget / active))
  }

  /** Closes it because its client holds too much. */
  exhaust(message: string): void {
    if (this.#server && this.size === 0 && this.charged === 0) this.close()
    else this.destroy(new Error(message))
  }

  /** Whether new streams may be opened. */
  get open(): boolean {
    return !this.closed && !this.#closing
  }

  /** Calls back at the peer's first SETTINGS. */
  whenSettled(then: () => void): void {
    if (this.#settled) then()
    else this.#settlers.push(then)
  }

  /** Calls back when the connection is closed, with the reason. */
  whenClosed(then: (failure: Error | undefined) => void): void {
    if (this.closed) then(undefined)
    else this.#closers.push(then)
  }

  /**
   * Opens a stream; beyond the server's limit of concurrent streams it is queued. A connection without streams does not keep
   * the program running.
   */
  request(headers: OutgoingHeaders): Stream {
    const stream = new Stream(this)
    stream.headersSent = true
    if (this.open && this.size === 0) this.socket.ref()
    if (this.open) this.#streams.request(stream, headers)
    else stream.finish(new StreamError('REFUSED_STREAM', 'connection is closing', true, true))
    // The next request opens a new connection then.
    if (this.#streams.exhausted) this.close()
    return stream
  }

  /** Sends a PING; calls back on its acknowledgement. */
  ping(answered: () => void): void {
    this.#pings.push(answered)
    this.#sender.output.frame(frameType.PING, 0, 0, Buffer.alloc(8))
    this.#sender.output.schedule()
  }

  /** Opens no more streams, and closes the connection when the open ones have ended. */
  close(): void {
    if (!this.open) return
    this.#closing = true
    this.#goAway('NO_ERROR', this.#server ? gracefulStop : '')
    this.#endIfDone()
  }

  /** Closes the connection and ends all its streams at once. */
  destroy(failure?: Error): void {
    if (this.closed) return
    this.gone(failure)
    this.socket.terminate()
  }

  // Events of the socket.

  /** Handles received bytes. */
  receive(chunk: Buffer): void {
    if (this.closed) return
    this.lastHeard = performance.now()
    if (this.#unread.length > 0) {
      this.#unread.push(chunk)
      this.#limitUnread()
    } else this.#look(chunk)
  }

  /** Continues with bytes that waited for their turn. */
  proceed(): void {
    while (!this.closed && !this.sated) {
      const bytes = this.#unread.shift()
      if (!bytes) break
      this.#look(bytes, true)
    }
    if (this.closed || this.#unread.length > 0) return
    if (!this.#behind) return
    this.#behind = false
    if (!this.#paused) this.socket.resume()
  }

  /** Whether its client has used up its turn. */
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
      // It causes responses and does not read them.
      this.#paused = true
      this.socket.pause()
    }
    this.#sender.output.schedule()
  }

  /** The socket accepts bytes again. */
  drained(): void {
    if (this.closed) return
    this.#sender.output.drained()
    this.#endIfDone()
    if (!this.#paused || this.#sender.output.size > limits.softOutput) return
    this.#paused = false
    if (!this.#behind) this.socket.resume()
  }

  /** The socket is closed. */
  gone(failure?: Error): void {
    if (this.closed) return
    this.closed = true
    this.#unread.length = 0
    this.#blocks.drop()
    this.#sender.output.close()
    this.#streams.endAll(`${failure?.message ?? 'connection was closed'}${this.#farewell}`)
    this.#share?.disconnect(this)
    for (const closer of this.#closers.splice(0)) closer(failure)
  }

  #defer(rest: Buffer): void {
    this.#unread.unshift(rest)
    this.#share?.portion.defer(this)
    this.#limitUnread()
  }

  /** Pausing costs several system calls, so it is left out for the few small requests that a turn leaves over. */
  #limitUnread(): void {
    if (this.#behind) return
    let size = 0
    for (const { length } of this.#unread) size += length
    if (size <= limits.softUnread) return
    this.#behind = true
    this.socket.pause()
  }

  // Called by streams.

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

  // Called for frames.

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
    else if (type === frameType.PUSH_PROMISE) throw new ConnectionError('PROTOCOL_ERROR', 'PUSH_PROMISE is not enabled')
    // Frames of unknown types are ignored.
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
    if (stream?.remoteEnded) streams.abortStream(stream, 'STREAM_CLOSED', 'bytes after the end')
    else if (stream) {
      stream.receiveWindow -= length
      if (stream.receiveWindow < 0) streams.abortStream(stream, 'FLOW_CONTROL_ERROR', 'more bytes than the window of the stream')
    } else if (streams.isIdle(id)) throw new ConnectionError('PROTOCOL_ERROR', `DATA of stream ${id}, which was never opened`)
    else if (this.#server && !streams.brokenByUs(id)) streams.refuse(id, 'STREAM_CLOSED')
  }

  #deliver(stream: Stream, piece: Buffer, end: boolean): void {
    if (!this.#server && !stream.answered) {
      this.#streams.abortStream(stream, 'PROTOCOL_ERROR', 'bytes before the headers')
      return
    }
    if (stream.expected >= 0) {
      stream.expected -= piece.length
      if (stream.expected < 0 || (end && stream.expected > 0)) {
        this.#streams.abortStream(stream, 'PROTOCOL_ERROR', 'content-length is not the length of the content')
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
    // No reader releases the padding.
    if (stream) this.#credit.giveBackPadding(stream, payload.length - piece.length)
    this.data(id, piece, 0, flags)
  }

  /** END_STREAM was received. */
  #received(stream: Stream, trailers: Headers | undefined): void {
    if (stream.closed) return
    stream.arrived({ trailers })
    if (stream.localEnded) this.#streams.complete(stream)
  }

  #priority(id: number, payload: Buffer): void {
    this.#idleFrame()
    const stream = this.#streams.get(id)
    if (payload.length === 5) this.#dependency(id, payload)
    else if (stream) this.#streams.abortStream(stream, 'FRAME_SIZE_ERROR', 'PRIORITY of a wrong length')
    else this.#streams.refuse(id, 'FRAME_SIZE_ERROR')
  }

  #dependency(id: number, payload: Buffer): void {
    if (payload.length < 5) throw new ConnectionError('FRAME_SIZE_ERROR', 'priority is truncated')
    if ((payload.readUInt32BE(0) & maxInt31) !== id) return
    const stream = this.#streams.get(id)
    if (!stream) throw new ConnectionError('PROTOCOL_ERROR', `stream ${id} depends on itself`)
    this.#streams.abortStream(stream, 'PROTOCOL_ERROR', 'stream depends on itself')
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
    // After a complete response, RST_STREAM only stops the rest of the request: that is not a failure (RFC 9113, section 8.1).
    if (code === 'NO_ERROR' && stream.remoteEnded) stream.finish()
    else stream.finish(new StreamError(code, `stream reset: ${code}`, true, code === 'REFUSED_STREAM'))
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
    if (payload.length < 8) throw new ConnectionError('FRAME_SIZE_ERROR', 'GOAWAY is truncated')
    this.#closing = true
    if (!this.#server) {
      const code = errorName(payload.readUInt32BE(4))
      const data = payload.toString('latin1', 8, 8 + farewellSize).replaceAll(/[^ -~]/g, '?')
      // In the words of the field's library, for clients that look for them.
      this.#farewell = `, received prior goaway: code: ${code}, debug data: "${data}"`
      this.#streams.endAfter(payload.readUInt32BE(0) & maxInt31, `server sent GOAWAY: ${code}`)
    }
    this.#endIfDone()
  }

  #windowUpdate(id: number, payload: Buffer): void {
    sized('WINDOW_UPDATE', payload, 4)
    const bytes = payload.readUInt32BE(0) & maxInt31
    if (id === 0) {
      if (bytes === 0) throw new ConnectionError('PROTOCOL_ERROR', 'window increment is 0')
      if (!this.#sender.widen(bytes)) throw new ConnectionError('FLOW_CONTROL_ERROR', 'window is too large')
      return
    }
    const stream = this.#streams.get(id)
    if (!stream && this.#streams.isIdle(id))
      throw new ConnectionError('PROTOCOL_ERROR', `WINDOW_UPDATE of stream ${id}, which was never opened`)
    if (!stream) return
    if (bytes === 0) this.#streams.abortStream(stream, 'PROTOCOL_ERROR', 'window increment is 0')
    else if (!this.#sender.widenStream(stream, bytes)) this.#streams.abortStream(stream, 'FLOW_CONTROL_ERROR', 'window is too large')
  }

  /** Counts a frame that does not advance any call; their number is limited. */
  #idleFrame(): void {
    if (++this.#sender.idleFrames > limits.maxIdleFrames)
      throw new ConnectionError('ENHANCE_YOUR_CALM', 'too many frames without effect on a call')
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
    // What the socket has not accepted yet is sent once it drains.
    if (this.#sender.output.size > 0) return
    this.gone()
    this.#hangUp()
  }

  /** Bytes a client sends after the close would make the kernel drop the last frames: so the socket is read a while longer. */
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
