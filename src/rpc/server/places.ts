/**
 * Work that callers may have done a few at a time, and for so long. When all places are taken, the caller with the most
 * loses its oldest one to a caller with fewer, so that a few callers cannot keep others out.
 */
import { type Clock, systemClock } from '../../cosi/clock.ts'
import { callerAddress } from '../caller-metadata.ts'
import { addressKey } from '../http2/shares.ts'
import { RpcError } from '../status.ts'
import type { Context } from './method.ts'

/** How many places one caller has, how many there are, and for how many milliseconds; without a time for as long as the caller likes. */
export interface PlaceLimits {
  readonly each: number
  readonly all: number
  readonly time?: number
}

/** A place while it is held. */
export interface HeldPlace extends Disposable {
  /** Aborted when the caller is gone, or has to leave the place to another. */
  readonly signal: AbortSignal
}

/** As whom a caller is counted: by the address that apid states, of IPv6 by its network. */
export const callerPlace = ({ metadata, peer }: Pick<Context, 'metadata' | 'peer'>): string =>
  addressKey(metadata[callerAddress]?.[0] ?? peer)

interface Place {
  readonly caller: string
  readonly stop: AbortController
}

/** The places for one kind of work, called `what`. */
export class Places {
  /** The oldest first. */
  readonly #taken = new Set<Place>()

  constructor(
    private readonly what: string,
    private readonly limits: PlaceLimits,
    private readonly clock: Clock = systemClock,
  ) {}

  /** Takes a place for a caller until it is given back. Throws RpcError when there is none. */
  hold(caller: string, gone: AbortSignal): HeldPlace {
    return this.#take(caller, gone)
  }

  /** Does work for a caller until it is done, the caller is gone, or its time or place is. Throws RpcError. */
  async run<T>(caller: string, gone: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { time } = this.limits
    using place = this.#take(caller, gone)
    const { signal } = place
    const over = new AbortController()
    const { promise: stopped, reject } = Promise.withResolvers<never>()
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop)
    const timer = time === undefined ? undefined : this.#timed(place, time, over.signal)
    try {
      signal.throwIfAborted()
      return await Promise.race([work(signal), stopped])
    } finally {
      signal.removeEventListener('abort', stop)
      over.abort()
      await timer
    }
  }

  #take(caller: string, gone: AbortSignal): Place & HeldPlace {
    const { each, all } = this.limits
    if (this.#of(caller).length >= each)
      throw new RpcError('ResourceExhausted', `${this.what}: ${each} of them are under way for you already`)
    if (this.#taken.size >= all) this.#makeRoom(caller)
    const stop = new AbortController()
    const signal = AbortSignal.any([gone, stop.signal])
    const place = { caller, stop, signal, [Symbol.dispose]: () => this.#release(place) }
    this.#taken.add(place)
    return place
  }

  #release(place: Place): void {
    this.#taken.delete(place)
  }

  async #timed({ stop }: Place, time: number, over: AbortSignal): Promise<void> {
    await this.clock.sleep(time, over)
    stop.abort(new RpcError('DeadlineExceeded', `${this.what}: not done within ${time / 1000} s`))
  }

  #of(caller: string): Place[] {
    return [...this.#taken].filter((place) => place.caller === caller)
  }

  #makeRoom(caller: string): void {
    const most = [...new Set([...this.#taken].map((place) => place.caller))]
      .map((other) => this.#of(other))
      .reduce((top, places) => (places.length > top.length ? places : top))
    const full = `${this.what}: ${this.limits.all} of them are under way already`
    if (most.length <= this.#of(caller).length + 1) throw new RpcError('ResourceExhausted', full)
    const [oldest] = most
    this.#taken.delete(oldest!)
    oldest!.stop.abort(new RpcError('ResourceExhausted', `${full}, most of them for you`))
  }
}
