/**
 * The receive windows of a connection. A stream's window is replenished when its reader releases bytes, the connection's on
 * arrival, as long as its streams together do not hold too much.
 */
import { ConnectionError } from '../../wire/http2/error.ts'
import { frameType } from '../../wire/http2/frame.ts'
import { connectionWindow, firstWindow, largestWindow, maxHeld, windowBudget } from './limits.ts'
import type { Output } from './output.ts'
import type { Stream } from './stream.ts'

/** Increments below this are not worth a frame. */
const smallest = 16_384

/** Tracks what the peer may send. */
export class Credit {
  readonly #output: Output
  #window = connectionWindow
  #arrived = 0
  #held = 0

  constructor(output: Output) {
    this.#output = output
  }

  /** Accounts for a DATA frame of this length. Throws ConnectionError when it exceeds the window. */
  take(length: number): void {
    this.#window -= length
    if (this.#window < 0) throw new ConnectionError('FLOW_CONTROL_ERROR', 'more bytes than the window of the connection')
    this.#arrived += length
  }

  /** The stream holds these bytes until they are released. */
  hold(stream: Stream, bytes: number): void {
    stream.held += bytes
    stream.charge(bytes)
    this.#held += bytes
  }

  /** A stream's reader has released bytes; `active` streams share the connection. */
  release(stream: Stream, bytes: number, streams: number): void {
    // What a stream held is released at its end.
    if (stream.closed) return
    stream.held -= bytes
    stream.charge(-bytes)
    this.#held -= bytes
    this.giveBack()
    if (stream.remoteEnded || stream.receiveWindow > stream.granted / 2) return
    const target = Math.min(largestWindow, Math.max(firstWindow, Math.floor(windowBudget / streams)))
    const room = target - stream.held - stream.receiveWindow
    if (room < smallest) return
    stream.receiveWindow += room
    stream.granted = stream.receiveWindow
    this.#output.number(frameType.WINDOW_UPDATE, stream.id, room)
    this.#output.schedule()
  }

  /** Accounts for padding, which no reader releases. */
  giveBackPadding(stream: Stream, bytes: number): void {
    if (bytes === 0 || stream.remoteEnded) return
    stream.receiveWindow += bytes
    this.#output.number(frameType.WINDOW_UPDATE, stream.id, bytes)
  }

  /** Releases everything an ended stream held. */
  forget(stream: Stream): void {
    this.#held -= stream.held
    stream.held = 0
    this.giveBack()
  }

  /** Widens the window of the connection once enough has arrived. */
  giveBack(): void {
    if (this.#arrived < connectionWindow / 2 || this.#held > maxHeld) return
    this.#window += this.#arrived
    this.#output.number(frameType.WINDOW_UPDATE, 0, this.#arrived)
    this.#arrived = 0
    this.#output.schedule()
  }
}
