/**
 * The connections to other nodes that a client makes this node open. Clients choose where they lead, so each client has
 * few under way at a time and a rate in the long run; further ones wait, so that one call may still name many nodes.
 */
import { type Clock, systemClock } from '../../cosi/clock.ts'
import { RpcError } from '../../rpc/status.ts'
import { TokenBucket } from '../../timing/token-bucket.ts'

/** Of one client: dials at a time, dials at once and for each second in the long run, and milliseconds to wait for a turn. */
export const dialLimits = { atOnce: 64, burst: 2_000, rate: 20, wait: 20_000 } as const

/** What one client has under way. */
class Dialer {
  underWay = 0
  /** What begins those that wait, the first to come first. */
  readonly waiting = new Set<() => void>()
  readonly #bucket: TokenBucket

  constructor(private readonly clock: Clock) {
    this.#bucket = new TokenBucket(dialLimits, clock.elapsed())
  }

  /** Takes one dial off what the client may do in the long run. Throws ResourceExhausted. */
  pay(): void {
    if (!this.#bucket.take(this.clock.elapsed()))
      throw new RpcError('ResourceExhausted', `too many connections to nodes for you: at most ${dialLimits.rate} a second`)
  }

  get idle(): boolean {
    return this.underWay === 0 && this.waiting.size === 0 && this.#bucket.full(this.clock.elapsed())
  }
}

/** The dials of all clients. */
export class Dials {
  readonly #dialers = new Map<string, Dialer>()

  constructor(private readonly clock: Clock = systemClock) {}

  /** Dials when it is the client's turn; `gone` returns whether no caller waits for it any more. Throws RpcError. */
  async run<T>(client: string, gone: () => boolean, dial: () => T | Promise<T>): Promise<T> {
    const dialer = this.#of(client)
    dialer.pay()
    if (dialer.underWay < dialLimits.atOnce) dialer.underWay++
    else await this.#turn(dialer)
    try {
      if (gone()) throw new RpcError('Canceled', 'the caller is gone')
      return await dial()
    } finally {
      this.#next(dialer)
    }
  }

  #turn(dialer: Dialer): Promise<void> {
    return new Promise((go, refuse) => {
      const over = new AbortController()
      const begin = () => {
        over.abort()
        go()
      }
      dialer.waiting.add(begin)
      this.clock
        .sleep(dialLimits.wait, over.signal)
        .then(() => {
          if (!dialer.waiting.delete(begin)) return
          const what = `${dialLimits.atOnce} connections to nodes are being made for you already`
          throw new RpcError('ResourceExhausted', `${what}: name fewer nodes at a time`)
        })
        .catch(refuse)
    })
  }

  /** The place of a dial that is over goes to the one that waits for longest. */
  #next(dialer: Dialer): void {
    const [next] = dialer.waiting
    if (!next) {
      dialer.underWay--
      return
    }
    dialer.waiting.delete(next)
    next()
  }

  #of(client: string): Dialer {
    const known = this.#dialers.get(client)
    if (known) return known
    for (const [key, dialer] of this.#dialers) if (dialer.idle) this.#dialers.delete(key)
    const made = new Dialer(this.clock)
    this.#dialers.set(client, made)
    return made
  }
}
