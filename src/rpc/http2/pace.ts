/**
 * When connections begin their handshakes. One costs a server a millisecond or more in a piece, so hundreds at once would
 * hold up everything else; beyond a few they wait, each address in its turn.
 */

/** Handshakes a second in the long run and at once, and milliseconds between looks at those that wait. */
const rate = 500
const burst = 32
const interval = 10

/** A connection that can be held back. */
export interface Paused {
  pause(): void
  resume(): void
}

/** The handshakes of one listener. */
export class Pace<Socket extends Paused> {
  #left = burst
  #since = performance.now()
  /** Those that wait, by address; the address that was served last comes last. */
  readonly #waiting = new Map<string, Set<Socket>>()
  #timer: ReturnType<typeof setInterval> | undefined

  /** A connection was made: its handshake begins now, or in its turn. */
  enter(socket: Socket, address: string): void {
    this.#refill()
    if (this.#waiting.size === 0 && this.#left >= 1) {
      this.#left--
      return
    }
    socket.pause()
    const queue = this.#waiting.get(address) ?? new Set()
    this.#waiting.set(address, queue.add(socket))
    this.#timer ??= setInterval(() => this.#release(), interval)
  }

  /** A connection has gone. */
  leave(socket: Socket, address: string): void {
    const queue = this.#waiting.get(address)
    if (queue?.delete(socket) && queue.size === 0) this.#waiting.delete(address)
  }

  #refill(): void {
    const now = performance.now()
    this.#left = Math.min(burst, this.#left + ((now - this.#since) / 1000) * rate)
    this.#since = now
  }

  #release(): void {
    this.#refill()
    // No more in one piece than an interval's, however late it is.
    for (let most = (rate * interval) / 1000; most > 0 && this.#left >= 1; most--) {
      const [next] = this.#waiting
      if (!next) break
      const [address, queue] = next
      const [socket] = queue
      this.#waiting.delete(address)
      if (!socket) continue
      queue.delete(socket)
      if (queue.size > 0) this.#waiting.set(address, queue)
      this.#left--
      socket.resume()
    }
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
