/**
 * One stream of a connection: headers, then bytes with back pressure both ways, then the end.
 * What comes is handed on as it comes; its sender may send as much again as was released. What is sent waits here when
 * the other side does not take it; `write` says so, and `drained` says when there is room again.
 */
import type { ErrorName } from '../../wire/http2/error.ts'
import type { Headers, OutgoingHeaders } from '../../wire/http2/hpack.ts'
import { endWith } from '../frame.ts'
import { RpcError } from '../status.ts'
import { firstWindow, smallPiece } from './limits.ts'
import type { Holder, Share } from './shares.ts'

/** Why a stream ended before both sides had said all. */
export class StreamError extends Error {
  constructor(
    readonly code: ErrorName,
    message: string,
    /** Whether the other side said so, or its connection went. */
    readonly theirs: boolean,
    /** Whether the other side never looked at the request: it may be sent again. */
    readonly unprocessed = false,
  ) {
    super(message)
    this.name = 'StreamError'
  }
}

/** Is told what comes on a stream. */
export interface StreamReader {
  /** The headers of a response. */
  headers?(headers: Headers): void
  /** Bytes; whoever has done with them releases as many. */
  data(piece: Buffer): void
  /** The other side has said all. */
  end(trailers: Headers | undefined): void
}

/** The connection, as its streams see it. */
export interface Carrier {
  readonly socket: import('./output.ts').Socket
  /** Bytes that each of its streams may have waiting before it is full. */
  readonly streamRoom: number
  sendHeaders(stream: Stream, headers: OutgoingHeaders, end: boolean): void
  sendData(stream: Stream, chunk: Buffer): boolean
  sendEnd(stream: Stream): void
  sendReset(stream: Stream, code: ErrorName): void
  released(stream: Stream, bytes: number): void
}

/** A piece that is kept must not keep the much larger chunk that it was cut from. */
export function compact(piece: Buffer): Buffer {
  return piece.length * 2 < piece.buffer.byteLength ? Buffer.from(piece) : piece
}

type Arrival = { headers: Headers } | { piece: Buffer } | { trailers: Headers | undefined }

/** A stream. Fields without a method are its connection's. */
export class Stream implements Holder {
  readonly connection: Carrier
  /** 0 while a request waits for its turn. */
  id = 0
  /** Its send window, less the one that all streams of its connection begin with. */
  sendWindow = 0
  receiveWindow = firstWindow
  /** The receive window after it was last widened. */
  granted = firstWindow
  /** Bytes that came and were not released. */
  held = 0
  /** Of a server: the client that is charged for what waits. */
  share: Share | undefined
  /** Bytes that its client is charged for. */
  charged = 0
  readonly pending: Buffer[] = []
  pendingBytes = 0
  /** Bytes of the first pending chunk that are sent already. */
  pendingFrom = 0
  /** The last headers that its owner sends; those of a response when it is nothing else. */
  trailers: OutgoingHeaders | undefined
  /** The owner has said all; it may still be pending. */
  ending = false
  /** Our end was sent. */
  localEnded = false
  /** The other side's end came. */
  remoteEnded = false
  /** What content-length promised, counted down; -1 when there was none. */
  expected = -1
  /** The response's headers came. */
  answered = false
  headersSent = false
  closed = false
  failure: StreamError | undefined
  /** The last pending chunk when it has room for more, and how much of it is used. */
  #tail: Buffer | undefined
  #tailUsed = 0
  #reader: StreamReader | undefined
  #inbox: Arrival[] | undefined
  #closers: (() => void)[] = []
  #waiters: (() => void)[] = []

  constructor(connection: Carrier) {
    this.connection = connection
  }

  /** Sends the headers of a response; with `end` that is all. */
  respond(headers: OutgoingHeaders, end = false): void {
    if (this.closed || this.headersSent) return
    this.headersSent = true
    if (end) {
      this.ending = true
      this.trailers = headers
    }
    this.connection.sendHeaders(this, headers, end)
  }

  /** Sends bytes; false when they wait and no more should come before `drained`. */
  write(chunk: Buffer): boolean {
    if (this.closed || this.ending || chunk.length === 0) return true
    return this.connection.sendData(this, chunk)
  }

  /** Says that this is all: the last bytes, and trailers behind them. */
  end(chunk?: Buffer, trailers?: OutgoingHeaders): void {
    if (this.closed || this.ending) return
    this.ending = true
    this.trailers = trailers
    if (chunk && chunk.length > 0) this.connection.sendData(this, chunk)
    else this.connection.sendEnd(this)
  }

  /** Breaks the stream off. */
  reset(code: ErrorName = 'CANCEL', message = 'broken off'): void {
    // When both sides have said all there is nothing left to break off.
    if (this.closed || (this.localEnded && this.remoteEnded)) return
    this.connection.sendReset(this, code)
    this.finish(new StreamError(code, message, false))
  }

  /** Hands on what came and what comes; to be called once. */
  read(reader: StreamReader): void {
    this.#reader = reader
    const inbox = this.#inbox
    this.#inbox = undefined
    for (const arrival of inbox ?? []) this.#hand(arrival)
  }

  /** Lets the other side send as many bytes again. */
  release(bytes: number): void {
    this.connection.released(this, bytes)
  }

  /** Whether bytes that were written still wait for room. */
  get full(): boolean {
    return this.pendingBytes >= this.connection.streamRoom
  }

  /** Calls back once there is room again, or never will be. */
  drained(then: () => void): void {
    if (this.closed || !this.full) then()
    else this.#waiters.push(then)
  }

  /** Calls back when nothing more comes or goes; `failure` says why if that was early. */
  whenClosed(then: () => void): void {
    if (this.closed) then()
    else this.#closers.push(then)
  }

  /** The bytes as they come, released as they are taken. Throws StreamError when the stream breaks. */
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

  /** Counts bytes that begin to wait, or no longer do, against its client. */
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

  /** Ends it because its client holds too much. A message that was cut can be followed by a reset only. */
  exhaust(message: string): void {
    if (this.pendingBytes > 0 && this.headersSent) this.reset('ENHANCE_YOUR_CALM', message)
    else endWith(this, new RpcError('ResourceExhausted', message))
    if (!this.closed) this.reset('ENHANCE_YOUR_CALM', message)
  }

  // What follows is for the connection.

  /** Keeps bytes until they can be sent. */
  keep(chunk: Buffer): void {
    this.pendingBytes += chunk.length
    this.charge(chunk.length)
    if (chunk.length >= smallPiece) {
      this.pending.push(compact(chunk))
      return
    }
    const last = this.pending.length - 1
    if (this.#tail && last >= 0 && this.pending[last]!.buffer === this.#tail.buffer && this.#tailUsed + chunk.length <= this.#tail.length) {
      this.#tailUsed += chunk.copy(this.#tail, this.#tailUsed)
      this.pending[last] = this.#tail.subarray(0, this.#tailUsed)
      return
    }
    this.#tail = Buffer.allocUnsafeSlow(2 * smallPiece)
    this.#tailUsed = chunk.copy(this.#tail)
    this.pending.push(this.#tail.subarray(0, this.#tailUsed))
  }

  arrived(arrival: Arrival): void {
    if (this.#reader) this.#hand(arrival)
    else {
      this.#inbox ??= []
      this.#inbox.push('piece' in arrival ? { piece: compact(arrival.piece) } : arrival)
    }
  }

  /** The commonest arrival, without an object for it. */
  arrivedData(piece: Buffer): void {
    if (this.#reader) this.#reader.data(piece)
    else this.arrived({ piece })
  }

  #hand(arrival: Arrival): void {
    const reader = this.#reader!
    if ('piece' in arrival) reader.data(arrival.piece)
    else if ('headers' in arrival) reader.headers?.(arrival.headers)
    else reader.end(arrival.trailers)
  }

  /** There may be room for more. */
  wake(): void {
    if (this.#waiters.length === 0 || (this.full && !this.closed)) return
    for (const waiter of this.#waiters.splice(0)) waiter()
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
    for (const closer of this.#closers.splice(0)) closer()
  }
}
