/**
 * The way to one backend: a single HTTP/2 connection for all calls, dialed when first needed. After a failed dial
 * further calls fail at once until a growing pause is over; an unused connection is closed.
 */
import { type Deadline, systemClock } from '../../cosi/clock.ts'
import { dial, type Target } from '../../rpc/client/dial.ts'
import type { Session } from '../../rpc/http2/session.ts'
import { RpcError, toRpcError } from '../../rpc/status.ts'

/** How long things take, in milliseconds. */
export interface UpstreamTimes {
  readonly connectTimeout: number
  readonly firstBackoff: number
  readonly maxBackoff: number
  readonly idle: number
  /** Between questions whether the other side is still there, and for its answer; 0 for none. */
  readonly ping: number
}

/** For other nodes. */
export const remoteTimes: UpstreamTimes = {
  connectTimeout: 20_000,
  firstBackoff: 1_000,
  maxBackoff: 15_000,
  idle: 15 * 60_000,
  ping: 10_000,
}

/** For machined's socket, which is back at once when machined is. Each client has a connection, which costs next to nothing to make. */
export const localTimes: UpstreamTimes = { connectTimeout: 5_000, firstBackoff: 20, maxBackoff: 500, idle: 60_000, ping: 0 }

/** Where calls go. */
export interface Way {
  /** The connection to use. Throws RpcError. */
  connection(): Session | Promise<Session>
}

/** One backend. */
export class Upstream implements Way {
  readonly #target: () => Target
  readonly #times: UpstreamTimes
  #session?: Session | undefined
  #dialing?: Promise<Session> | undefined
  #failure?: RpcError | undefined
  #failures = 0
  #retry?: Deadline
  #idle?: ReturnType<typeof setTimeout> | undefined

  readonly #unused: () => void

  /** `target` is called for each dial, so that renewed certificates are used. `unused` is called after a long idle time. */
  constructor(target: () => Target, times: UpstreamTimes, unused: () => void = () => {}) {
    this.#target = target
    this.#times = times
    this.#unused = unused
  }

  /** Whether a call would make it dial now. */
  get wouldDial(): boolean {
    return !this.open && !this.#dialing && !(this.#failure && this.#retry && !this.#retry.over)
  }

  /** Whether it has calls, or is about to. */
  get busy(): boolean {
    return this.#dialing !== undefined || (this.open?.size ?? 0) > 0
  }

  /** The open connection, if there is one now. */
  get open(): Session | undefined {
    const session = this.#session
    return session?.open ? session : undefined
  }

  /** The connection, dialed when there is none. Throws RpcError Unavailable. */
  connection(): Session | Promise<Session> {
    this.#touch()
    const open = this.open
    if (open) return open
    if (this.#dialing) return this.#dialing
    if (this.#failure && this.#retry && !this.#retry.over) return Promise.reject(this.#failure)
    this.#dialing = this.#dial()
    return this.#dialing
  }

  /** Ends the connection when its calls have ended; the next call dials again. */
  drain(): void {
    clearTimeout(this.#idle)
    this.#session?.close()
    this.#session = undefined
    this.#failure = undefined
  }

  async #dial(): Promise<Session> {
    try {
      const session = await dial(this.#target(), { timeout: this.#times.connectTimeout })
      session.whenClosed(() => {
        if (this.#session === session) this.#session = undefined
      })
      this.#session = session
      pingRegularly(session, this.#times.ping)
      this.#failures = 0
      this.#failure = undefined
      return session
    } catch (error) {
      const { firstBackoff, maxBackoff } = this.#times
      this.#failure = toRpcError(error)
      this.#retry = systemClock.deadline(Math.min(maxBackoff, firstBackoff * 1.6 ** this.#failures++))
      throw this.#failure
    } finally {
      this.#dialing = undefined
    }
  }

  #touch(): void {
    if (this.#idle) {
      this.#idle.refresh()
      return
    }
    this.#idle = setTimeout(() => {
      this.#idle = undefined
      // A call that goes on for long, such as a followed log, is no reason to dial a second time.
      if (this.busy) {
        this.#touch()
        return
      }
      this.#session?.close()
      this.#session = undefined
      this.#unused()
    }, this.#times.idle)
    this.#idle.unref()
  }
}

/** A node that lost its power sends no FIN: without pings, calls to it would wait for the TCP timeout. */
function pingRegularly(session: Session, every: number): void {
  if (every === 0) return
  let answered = true
  const timer = setInterval(() => {
    if (!answered) {
      session.destroy(new Error(`no response within ${every} ms`))
      return
    }
    answered = false
    session.ping(() => {
      answered = true
    })
  }, every)
  timer.unref()
  session.whenClosed(() => clearInterval(timer))
}

/** Backends by their name: other nodes, or machined for each client. Those unused for long are forgotten. */
export class Upstreams {
  readonly #byName = new Map<string, Upstream>()
  readonly #targetOf: (name: string) => Target
  readonly #times: UpstreamTimes

  constructor(targetOf: (name: string) => Target, times: UpstreamTimes) {
    this.#targetOf = targetOf
    this.#times = times
  }

  /** The backend, when a call to it needs no dial of its own. */
  ready(name: string): Upstream | undefined {
    const upstream = this.#byName.get(name)
    return upstream?.wouldDial === false ? upstream : undefined
  }

  to(name: string): Upstream {
    let upstream = this.#byName.get(name)
    if (!upstream) {
      if (this.#byName.size >= maxUpstreams) this.#forget()
      const made = new Upstream(
        () => this.#targetOf(name),
        this.#times,
        () => {
          if (this.#byName.get(name) === made) this.#byName.delete(name)
        },
      )
      upstream = made
      this.#byName.set(name, upstream)
    }
    return upstream
  }

  /** Makes the next call to a backend dial again; the calls it has go on. */
  renew(name: string): void {
    this.#byName.get(name)?.drain()
  }

  /** Ends all connections when their calls have ended. */
  drain(): void {
    for (const upstream of this.#byName.values()) upstream.drain()
    this.#byName.clear()
  }

  /** Callers choose the names: without a bound they would choose our memory. */
  #forget(): void {
    for (const [name, upstream] of this.#byName) {
      if (upstream.busy) continue
      upstream.drain()
      this.#byName.delete(name)
    }
    if (this.#byName.size >= maxUpstreams) throw new RpcError('ResourceExhausted', `calls to more than ${maxUpstreams} places at a time`)
  }
}

const maxUpstreams = 4096
