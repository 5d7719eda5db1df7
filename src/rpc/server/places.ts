/**
 * Limits concurrent work per caller and in total, and its duration. When all slots are taken, the caller with most of them
 * loses its oldest one to a caller with fewer, so that a few callers cannot starve others.
 */
import { type Clock, systemClock } from '../../cosi/clock.ts'
import { callerAddress } from '../caller-metadata.ts'
import { addressKey } from '../http2/shares.ts'
import { RpcError } from '../status.ts'
import type { Context } from './method.ts'

/** Slots per caller, slots in total, and the time limit in milliseconds; without it a slot is held as long as the caller likes. */
export interface PlaceLimits {
  readonly each: number
  readonly all: number
  readonly time?: number
}

/** A slot while it is held. */
export interface HeldPlace extends Disposable {
  /** Aborted when the caller is gone, or loses the slot to another. */
  readonly signal: AbortSignal
}

/** The key by which a caller is counted: the address stated by apid, for IPv6 its /64 network. */
export const callerPlace = ({ metadata, peer }: Pick<Context, 'metadata' | 'peer'>): string =>
  addressKey(metadata[callerAddress]?.[0] ?? peer)

interface Place {
  readonly caller: string
  readonly stop: AbortController
}

/** The slots for one kind of work, named `what` in messages. */
export class Places {
  /** The oldest first. */
  readonly #taken = new Set<Place>()

  constructor(
    private readonly what: string,
    private readonly limits: PlaceLimits,
    private readonly clock: Clock = systemClock,
  ) {}

  /** Takes a slot for a caller until it is released. Throws RpcError when there is none. */
  hold(caller: string, gone: AbortSignal): HeldPlace {
    return this.#take(caller, gone)
  }

  /** Does work for a caller until it is done, the caller is gone, the time is over, or the slot is lost. Throws RpcError. */
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
    if (this.#of(caller).length >= each) throw new RpcError('ResourceExhausted', `${this.what}: ${each} of this caller are already running`)
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
    stop.abort(new RpcError('DeadlineExceeded', `${this.what}: not finished within ${time / 1000} s`))
  }

  #of(caller: string): Place[] {
    return [...this.#taken].filter((place) => place.caller === caller)
  }

  #makeRoom(caller: string): void {
    const most = [...new Set([...this.#taken].map((place) => place.caller))]
      .map((other) => this.#of(other))
      .reduce((top, places) => (places.length > top.length ? places : top))
    const full = `${this.what}: ${this.limits.all} are already running`
    const [oldest] = most
    if (!oldest || most.length <= this.#of(caller).length + 1) throw new RpcError('ResourceExhausted', full)
    this.#taken.delete(oldest)
    oldest.stop.abort(new RpcError('ResourceExhausted', `${full}, most of them of this caller`))
  }
}
