/**
 * Paces TLS handshakes. A handshake blocks the event loop for a millisecond or more, so hundreds at once would delay
 * everything else. Beyond a small burst connections wait, in turns by address.
 */
import { TokenBucket } from '../../timing/token-bucket.ts'

/** Handshakes per second, the burst, and milliseconds between checks of waiting connections. */
const rate = 500
const burst = 32
const interval = 10

/** A connection that can be paused. */
export interface Paused {
  pause(): void
  resume(): void
}

/** The handshakes of one listener. */
export class Pace<Socket extends Paused> {
  readonly #bucket = new TokenBucket({ rate, burst })
  /** Waiting connections by address; the address served most recently is last. */
  readonly #waiting = new Map<string, Set<Socket>>()
  #timer: ReturnType<typeof setInterval> | undefined

  /** Registers a new connection: its handshake starts now or in its turn. */
  enter(socket: Socket, address: string): void {
    if (this.#waiting.size === 0 && this.#bucket.take()) return
    socket.pause()
    const queue = this.#waiting.get(address) ?? new Set()
    this.#waiting.set(address, queue.add(socket))
    this.#timer ??= setInterval(() => this.#release(), interval)
  }

  /** Removes a closed connection. */
  leave(socket: Socket, address: string): void {
    const queue = this.#waiting.get(address)
    if (queue?.delete(socket) && queue.size === 0) this.#waiting.delete(address)
  }

  #release(): void {
    // At most one interval's worth at once, however late the timer fires.
    for (let most = (rate * interval) / 1000; most > 0; most--) {
      const [next] = this.#waiting
      if (!next || !this.#bucket.take()) break
      const [address, queue] = next
      const [socket] = queue
      this.#waiting.delete(address)
      if (!socket) continue
      queue.delete(socket)
      if (queue.size > 0) this.#waiting.set(address, queue)
      socket.resume()
    }
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
