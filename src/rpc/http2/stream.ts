/**
 * One stream of a connection: headers, then bytes with back pressure in both directions, then the end.
 * Received bytes are passed on as they arrive; the peer may send as many again as were released. Bytes to send are buffered
 * while the peer does not accept them: `write` returns false, and `drained` calls back when there is space again.
 */
import type { ErrorName } from '../../wire/http2/error.ts'
import type { Headers, OutgoingHeaders } from '../../wire/http2/hpack.ts'
import { endWith } from '../frame.ts'
import { RpcError } from '../status.ts'
import type { Holder } from './holder.ts'
import { firstWindow, smallPiece } from './limits.ts'
import type { Share } from './shares.ts'

/** Why a stream ended before both sides had sent END_STREAM. */
export class StreamError extends Error {
  constructor(
    readonly code: ErrorName,
    message: string,
    /** Whether the peer reset it or closed the connection. */
    readonly theirs: boolean,
    /** Whether the peer has not processed the request, so that it may be retried. */
    readonly unprocessed = false,
  ) {
    super(message)
    this.name = 'StreamError'
  }
}

/** Receives the events of a stream. */
export interface StreamReader {
  /** The headers of a response. */
  headers?(headers: Headers): void
  /** Bytes; the reader releases as many when it has processed them. */
  data(piece: Buffer): void
  /** END_STREAM was received. */
  end(trailers: Headers | undefined): void
}

/** The connection, as seen by its streams. */
export interface Carrier {
  readonly socket: import('./output.ts').Socket
  /** Bytes that each stream may buffer before it is full. */
  readonly streamRoom: number
  sendHeaders(stream: Stream, headers: OutgoingHeaders, end: boolean): void
  sendData(stream: Stream, chunk: Buffer): boolean
  sendEnd(stream: Stream): void
  sendReset(stream: Stream, code: ErrorName): void
  released(stream: Stream, bytes: number): void
}

/** Copies a retained piece out of a much larger chunk, so that the chunk can be freed. */
export function compact(piece: Buffer): Buffer {
  return piece.length * 2 < piece.buffer.byteLength ? Buffer.from(piece) : piece
}

type Arrival = { headers: Headers } | { piece: Buffer } | { trailers: Headers | undefined }

/** A stream. Fields without a method belong to its connection. */
export class Stream implements Holder {
  readonly connection: Carrier
  /** 0 while a request is queued. */
  id = 0
  /** Its send window, less the initial window of all streams of its connection. */
  sendWindow = 0
  receiveWindow = firstWindow
  /** The receive window after it was last widened. */
  granted = firstWindow
  /** Bytes received and not released. */
  held = 0
  /** Server: the client that is charged for pending bytes. */
  share: Share | undefined
  /** Bytes charged to its client. */
  charged = 0
  readonly pending: Buffer[] = []
  pendingBytes = 0
  /** Bytes of the first pending chunk that are sent already. */
  pendingFrom = 0
  /** The last headers to send: trailers, or those of a response without a body. */
  trailers: OutgoingHeaders | undefined
  /** The owner has finished; END_STREAM may still be pending. */
  ending = false
  /** END_STREAM was sent. */
  localEnded = false
  /** END_STREAM was received. */
  remoteEnded = false
  /** What is left of content-length; -1 when there was none. */
  expected = -1
  /** The response headers were received. */
  answered = false
  headersSent = false
  closed = false
  failure: StreamError | undefined
  /** The last pending chunk if it has space left, and how much of it is used. */
  #tail: Buffer | undefined
  #tailUsed = 0
  #reader: StreamReader | undefined
  #inbox: Arrival[] | undefined
  #closers: (() => void)[] | undefined
  #waiters: (() => void)[] | undefined

  constructor(connection: Carrier) {
    this.connection = connection
  }

  /** Sends the headers of a response; `end` sets END_STREAM. */
  respond(headers: OutgoingHeaders, end = false): void {
    if (this.closed || this.headersSent) return
    this.headersSent = true
    if (end) {
      this.ending = true
      this.trailers = headers
    }
    this.connection.sendHeaders(this, headers, end)
  }

  /** Sends bytes; false when they are buffered and the writer should wait for `drained`. */
  write(chunk: Buffer): boolean {
    if (this.closed || this.ending || chunk.length === 0) return true
    return this.connection.sendData(this, chunk)
  }

  /** Ends the stream with the last bytes and trailers. */
  end(chunk?: Buffer, trailers?: OutgoingHeaders): void {
    if (this.closed || this.ending) return
    this.ending = true
    this.trailers = trailers
    if (chunk && chunk.length > 0) this.connection.sendData(this, chunk)
    else this.connection.sendEnd(this)
  }

  /** Resets the stream. */
  reset(code: ErrorName = 'CANCEL', message = 'broken off'): void {
    // When both sides have sent END_STREAM there is nothing to reset.
    if (this.closed || (this.localEnded && this.remoteEnded)) return
    this.connection.sendReset(this, code)
    this.finish(new StreamError(code, message, false))
  }

  /** Sets the reader, which gets everything received so far and later; called once. */
  read(reader: StreamReader): void {
    this.#reader = reader
    const inbox = this.#inbox
    this.#inbox = undefined
    for (const arrival of inbox ?? []) this.#hand(reader, arrival)
  }

  /** Lets the peer send as many bytes again. */
  release(bytes: number): void {
    this.connection.released(this, bytes)
  }

  /** Whether written bytes are still buffered. */
  get full(): boolean {
    return this.pendingBytes >= this.connection.streamRoom
  }

  /** Calls back once the buffer has space again, or never will. */
  drained(then: () => void): void {
    if (this.closed || !this.full) then()
    else if (this.#waiters) this.#waiters.push(then)
    else this.#waiters = [then]
  }

  /** Calls back when the stream has ended; `failure` is the reason if that was early. */
  whenClosed(then: () => void): void {
    if (this.closed) then()
    else if (this.#closers) this.#closers.push(then)
    else this.#closers = [then]
  }

  /** The received bytes, released as they are consumed. Throws StreamError when the stream fails. */
  async *chunks(): AsyncGenerator<Buffer, void> {
    const pieces: Buffer[] = []
    let over = false
    let wake: (() => void) | undefined
    const woken = () => wake?.()
    this.read({
      data: (piece) => {
        pieces.push(compact(piece))
        woken()
      },
      end: () => {
        over = true
        woken()
      },
    })
    this.whenClosed(woken)
    for (;;) {
      const piece = pieces.shift()
      if (piece) {
        yield piece
        this.release(piece.length)
      } else if (over) return
      else if (this.closed) {
        if (this.failure) throw this.failure
        return
      } else
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
  }

  /** Counts bytes that start or stop waiting against its client. */
  charge(bytes: number): void {
    if (bytes === 0 || !this.share || this.closed) return
    this.charged += bytes
    this.share.charge(bytes)
  }

  /** Counts this call as that many more. Throws RpcError when its client has too many. */
  weigh(more: number): void {
    const refusal = this.closed ? undefined : this.share?.open(this, more)
    if (refusal !== undefined) throw new RpcError('ResourceExhausted', refusal)
  }

  /** Ends it because its client holds too much. After a truncated message only a reset may follow. */
  exhaust(message: string): void {
    if (this.pendingBytes > 0 && this.headersSent) this.reset('ENHANCE_YOUR_CALM', message)
    else endWith(this, new RpcError('ResourceExhausted', message))
    if (!this.closed) this.reset('ENHANCE_YOUR_CALM', message)
  }

  // Called by the connection.

  /** Buffers bytes until they can be sent. */
  keep(chunk: Buffer): void {
    this.pendingBytes += chunk.length
    this.charge(chunk.length)
    if (chunk.length >= smallPiece) {
      this.pending.push(compact(chunk))
      return
    }
    const last = this.pending.length - 1
    if (this.#tail && this.pending[last]?.buffer === this.#tail.buffer && this.#tailUsed + chunk.length <= this.#tail.length) {
      this.#tailUsed += chunk.copy(this.#tail, this.#tailUsed)
      this.pending[last] = this.#tail.subarray(0, this.#tailUsed)
      return
    }
    this.#tail = Buffer.allocUnsafeSlow(2 * smallPiece)
    this.#tailUsed = chunk.copy(this.#tail)
    this.pending.push(this.#tail.subarray(0, this.#tailUsed))
  }

  arrived(arrival: Arrival): void {
    if (this.#reader) this.#hand(this.#reader, arrival)
    else {
      this.#inbox ??= []
      this.#inbox.push('piece' in arrival ? { piece: compact(arrival.piece) } : arrival)
    }
  }

  /** The most common case, without allocating an object for it. */
  arrivedData(piece: Buffer): void {
    if (this.#reader) this.#reader.data(piece)
    else this.arrived({ piece })
  }

  #hand(reader: StreamReader, arrival: Arrival): void {
    if ('piece' in arrival) reader.data(arrival.piece)
    else if ('headers' in arrival) reader.headers?.(arrival.headers)
    else reader.end(arrival.trailers)
  }

  /** There may be space again. */
  wake(): void {
    const waiters = this.#waiters
    if (!waiters || (this.full && !this.closed)) return
    this.#waiters = undefined
    for (const waiter of waiters) waiter()
  }

  finish(failure?: StreamError): void {
    if (this.closed) return
    this.charge(-this.charged)
    this.closed = true
    this.failure = failure
    this.pending.length = 0
    this.pendingBytes = 0
    this.#tail = undefined
    this.share?.close(this)
    this.wake()
    const closers = this.#closers
    this.#closers = undefined
    if (closers) for (const closer of closers) closer()
  }
}
