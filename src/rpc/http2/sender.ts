/** The sending side of a connection: headers at once, bytes as windows and socket allow, streams in round-robin order. */
import type { ErrorName } from '../../wire/http2/error.ts'
import { errorCode } from '../../wire/http2/error.ts'
import { flag, frameType } from '../../wire/http2/frame.ts'
import { HpackEncoder, type OutgoingHeaders } from '../../wire/http2/hpack.ts'
import { defaultSettings, maxInt31, type Settings } from '../../wire/http2/settings.ts'
import { maxFrame, softOutput } from './limits.ts'
import { Output, type Socket } from './output.ts'
import type { Stream } from './stream.ts'

const nothing = Buffer.alloc(0)

/** Sends for all streams of a connection. */
export class Sender {
  readonly output: Output
  /** The settings of the peer. */
  readonly peer: Settings = defaultSettings()
  readonly #encoder = new HpackEncoder()
  /** Streams with pending bytes and an open window. */
  readonly #ready = new Set<Stream>()
  /** Streams with pending bytes and a closed window. */
  readonly #blocked = new Set<Stream>()
  /** An upper bound of the unused window that the peer granted to any stream beyond the initial one. */
  #widest = 0
  readonly #ended: (stream: Stream) => void
  #window = 65_535
  /** Consecutive frames that did not advance any call. */
  idleFrames = 0

  /** `ended` is called when END_STREAM was sent. */
  constructor(socket: Socket, ended: (stream: Stream) => void) {
    this.output = new Output(socket, () => this.#pump())
    this.#ended = ended
  }

  /** Sends headers at once; they are not subject to flow control. */
  headers(stream: Stream, headers: OutgoingHeaders, end: boolean): void {
    this.idleFrames = 0
    const block = this.#encoder.encode(headers)
    const size = this.peer.maxFrameSize
    for (let at = 0, type: number = frameType.HEADERS; at === 0 || at < block.length; at += size, type = frameType.CONTINUATION) {
      const last = at + size >= block.length
      const flags = (last ? flag.END_HEADERS : 0) | (end && at === 0 ? flag.END_STREAM : 0)
      this.output.frame(type, flags, stream.id, at === 0 && last ? block : block.subarray(at, at + size))
    }
    this.output.schedule()
    if (end) this.#end(stream)
  }

  /** Sends or buffers bytes; false when the stream is full. */
  data(stream: Stream, chunk: Buffer): boolean {
    if (
      stream.id > 0 &&
      stream.pendingBytes === 0 &&
      chunk.length <= this.#windowOf(stream) &&
      chunk.length <= this.#window &&
      this.output.size < softOutput
    ) {
      this.#frames(stream, chunk)
      return true
    }
    stream.keep(chunk)
    this.#enter(stream)
    return !stream.full
  }

  /** Sends END_STREAM once all bytes are sent. */
  end(stream: Stream): void {
    if (stream.id === 0 || stream.pendingBytes > 0 || stream.localEnded) return
    if (stream.trailers) this.headers(stream, stream.trailers, true)
    else {
      this.output.frame(frameType.DATA, flag.END_STREAM, stream.id, nothing)
      this.output.schedule()
      this.#end(stream)
    }
  }

  reset(id: number, code: ErrorName): void {
    this.output.number(frameType.RST_STREAM, id, errorCode[code])
    this.output.schedule()
  }

  /** Removes a stream. */
  leave(stream: Stream): void {
    this.#ready.delete(stream)
    this.#blocked.delete(stream)
  }

  /** A stream's request headers were sent: now its bytes may follow. */
  begin(stream: Stream): void {
    this.#enter(stream)
    if (stream.ending) this.end(stream)
  }

  /** Widens the window of the connection; false when it would exceed the maximum. */
  widen(bytes: number): boolean {
    this.#window += bytes
    this.#pump()
    return this.#window <= maxInt31
  }

  /** Widens the window of a stream; false when it would exceed the maximum. */
  widenStream(stream: Stream, bytes: number): boolean {
    stream.sendWindow += bytes
    this.#widest = Math.max(this.#widest, stream.sendWindow)
    if (this.#windowOf(stream) > maxInt31) return false
    this.#enter(stream)
    return true
  }

  /** The peer has changed the initial window of all streams; false when a window would exceed the maximum. */
  rebased(before: number, streams: () => Iterable<Stream>): boolean {
    if (this.peer.initialWindowSize <= before) return true
    if (this.peer.initialWindowSize + this.#widest > maxInt31) {
      this.#widest = 0
      for (const stream of streams()) this.#widest = Math.max(this.#widest, stream.sendWindow)
      if (this.peer.initialWindowSize + this.#widest > maxInt31) return false
    }
    for (const stream of this.#blocked) {
      if (this.#windowOf(stream) <= 0) continue
      this.#blocked.delete(stream)
      this.#ready.add(stream)
    }
    this.#pump()
    return true
  }

  /** The send window of a stream. A stream stores only the difference to the initial window, so a change of that costs nothing. */
  #windowOf(stream: Stream): number {
    return this.peer.initialWindowSize + stream.sendWindow
  }

  /** The peer allows another size of the header table. */
  resizeTable(): void {
    this.#encoder.tableLimit = this.peer.headerTableSize
  }

  #enter(stream: Stream): void {
    if (stream.pendingBytes === 0 || stream.id === 0) return
    if (this.#windowOf(stream) <= 0) {
      this.#blocked.add(stream)
      return
    }
    this.#blocked.delete(stream)
    this.#ready.add(stream)
    this.#pump()
  }

  /** Sends one frame of each stream in turn. A stream that is added again comes after all others. */
  #pump(): void {
    for (const stream of this.#ready) {
      if (this.#window <= 0 || this.output.size >= softOutput) return
      this.#ready.delete(stream)
      // SETTINGS may have narrowed its window since it became ready.
      if (this.#windowOf(stream) > 0) this.#next(stream)
      if (stream.pendingBytes > 0) (this.#windowOf(stream) > 0 ? this.#ready : this.#blocked).add(stream)
    }
  }

  #next(stream: Stream): void {
    const chunk = stream.pending[0]
    if (!chunk) return
    const from = stream.pendingFrom
    const size = Math.min(chunk.length - from, this.#windowOf(stream), this.#window, this.#frameSize)
    const last = size === stream.pendingBytes && stream.ending && !stream.trailers
    this.#frame(stream, chunk, from, from + size, last)
    stream.pendingBytes -= size
    stream.charge(-size)
    if (from + size === chunk.length) {
      stream.pending.shift()
      stream.pendingFrom = 0
    } else stream.pendingFrom = from + size
    if (last) this.#end(stream)
    else if (stream.pendingBytes === 0 && stream.ending) this.end(stream)
    stream.wake()
  }

  /** All of a chunk, in as many frames as needed. */
  #frames(stream: Stream, chunk: Buffer): void {
    const size = this.#frameSize
    const ends = stream.ending && !stream.trailers
    for (let at = 0; at < chunk.length; at += size) {
      const to = Math.min(at + size, chunk.length)
      this.#frame(stream, chunk, at, to, ends && to === chunk.length)
    }
    if (ends) this.#end(stream)
    else if (stream.ending) this.end(stream)
  }

  #frame(stream: Stream, chunk: Buffer, from: number, to: number, end: boolean): void {
    this.idleFrames = 0
    stream.sendWindow -= to - from
    this.#window -= to - from
    this.output.data(end ? flag.END_STREAM : 0, stream.id, chunk, from, to)
    this.output.schedule()
  }

  get #frameSize(): number {
    return Math.min(this.peer.maxFrameSize, maxFrame)
  }

  #end(stream: Stream): void {
    stream.localEnded = true
    this.#ended(stream)
  }
}
