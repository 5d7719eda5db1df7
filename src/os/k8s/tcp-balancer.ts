/**
 * A TCP load balancer on one address of this node: each connection goes to an upstream that accepts it. When none does, a client
 * is either held for a while, so that a client that comes a moment too early does not start to back off, or refused as if nothing
 * listened: some clients accept a refusal, but retry again and again after a timeout. Bytes are forwarded as they come, each side
 * read only as fast as the other accepts them.
 */

import type { Socket, TCPSocketListener } from 'bun'
import { systemClock } from '../../cosi/clock.ts'
import { pause } from '../../timing/pause.ts'
import { within } from '../../timing/within.ts'

/** The address of an upstream. */
export interface Upstream {
  host: string
  port: number
  /**
   * Itself a balancer, which may accept before its own upstreams do: used only when the others have kept a client waiting, or have
   * not accepted for a minute.
   */
  lastResort?: boolean
}

/** The timeouts of the balancer, in milliseconds. */
export interface BalancerOptions {
  hostname: string
  port: number
  /** One upstream's time to accept. */
  connectTimeout?: number
  /** Retry interval while a client is held. */
  retry?: number
  /** Called when the answer to "does any upstream accept" changes. */
  onHealth?(healthy: boolean): void
}

/** How long a client waits for the others before the last resort is tried, and after what time without an accept it is tried at once. */
const resortAfter = 6000
const silence = 60_000

interface Side {
  peer?: Socket<Side>
  /** Bytes that the peer has not accepted yet. */
  waiting: Uint8Array[]
  ended: boolean
}

/** A balancer; it starts with `listen` and checks upstreams with `check`. */
export class TcpBalancer {
  readonly #options: BalancerOptions
  readonly #connectTimeout: number
  #upstreams: readonly Upstream[] = []
  #healthy = false
  #closed = false
  #listener: TCPSocketListener<Side> | undefined
  /** How long a client is held while no upstream accepts, in milliseconds. */
  #holdTime = 0
  /** When an upstream that is no last resort accepted last. */
  #heard = systemClock.elapsed()
  readonly #failedAt = new Map<string, number>()

  constructor(options: BalancerOptions) {
    this.#options = options
    this.#connectTimeout = options.connectTimeout ?? 3000
  }

  /** The port while it listens. */
  get port(): number | undefined {
    return this.#listener?.port
  }

  get healthy(): boolean {
    return this.#healthy
  }

  /** Accepts clients, and holds each for so many milliseconds while no upstream accepts; TLS clients give a handshake ten seconds. */
  listen(holdTime: number): void {
    this.#holdTime = holdTime
    this.#listener ??= this.#openListener()
  }

  /** Lets the kernel refuse clients; existing connections stay. */
  refuse(): void {
    this.#listener?.stop(false)
    this.#listener = undefined
  }

  /** Replaces the upstreams in order of preference; existing connections stay. */
  setUpstreams(upstreams: readonly Upstream[]): void {
    this.#upstreams = upstreams
  }

  /** Checks which upstreams accept. */
  async check(): Promise<boolean> {
    const candidates = this.#upstreams.filter(({ lastResort }) => !lastResort || this.#lastResortCounts(0))
    try {
      const first = await Promise.any(
        candidates.map(async (upstream) => {
          const socket = await open(upstream, this.#connectTimeout)
          socket.terminate()
          return upstream
        }),
      )
      if (!first.lastResort) this.#heard = systemClock.elapsed()
      this.#note(true)
    } catch {
      this.#note(false)
    }
    return this.#healthy
  }

  close(): void {
    this.#closed = true
    this.#listener?.stop(true)
    this.#listener = undefined
  }

  #openListener(): TCPSocketListener<Side> {
    const { hostname, port } = this.#options
    return Bun.listen<Side>({
      hostname,
      port,
      socket: {
        ...relay,
        open: (client) => {
          client.data = { waiting: [], ended: false }
          // Nothing is read before there is an upstream.
          client.pause()
          this.#connectClient(client).catch(() => client.terminate())
        },
      },
    })
  }

  async #connectClient(client: Socket<Side>): Promise<void> {
    const start = systemClock.elapsed()
    for (;;) {
      const upstream = await this.#accepted(systemClock.elapsed() - start)
      if (this.#closed || client.readyState <= 0) {
        upstream?.terminate()
        return
      }
      if (upstream) return join(client, upstream)
      if (systemClock.elapsed() - start >= this.#holdTime) {
        client.terminate()
        return
      }
      await pause(this.#options.retry ?? 100)
    }
  }

  /** Connects to the first upstream that accepts. */
  async #accepted(waited: number): Promise<Socket<Side> | undefined> {
    const now = systemClock.elapsed()
    const anyone = this.#lastResortCounts(waited)
    // Upstreams that refused a moment ago come last.
    const rank = (upstream: Upstream) => Number(upstream.lastResort ?? false) * 2 + Number(recent(this.#failedAt.get(keyOf(upstream)), now))
    const order = this.#upstreams.filter(({ lastResort }) => anyone || !lastResort).sort((a, b) => rank(a) - rank(b))
    for (const upstream of order) {
      try {
        const socket = await open(upstream, this.#connectTimeout)
        this.#failedAt.delete(keyOf(upstream))
        if (!upstream.lastResort) this.#heard = systemClock.elapsed()
        this.#note(true)
        return socket
      } catch {
        this.#failedAt.set(keyOf(upstream), systemClock.elapsed())
      }
    }
    this.#note(false)
    return undefined
  }

  #lastResortCounts(waited: number): boolean {
    return waited >= resortAfter || systemClock.elapsed() - this.#heard >= silence || this.#upstreams.every(({ lastResort }) => lastResort)
  }

  #note(accepted: boolean): void {
    if (accepted === this.#healthy) return
    this.#healthy = accepted
    this.#options.onHealth?.(accepted)
  }
}

/** Connects to an upstream. */
function open(upstream: Upstream, timeout: number): Promise<Socket<Side>> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket<Side>>()
  const answer = within(promise, timeout, () => new Error('no answer in time'))
  Bun.connect<Side>({
    hostname: upstream.host,
    port: upstream.port,
    data: { waiting: [], ended: false },
    socket: { ...relay, open: resolve, connectError: (_, error) => reject(error) },
  }).then(
    // A connection after the timeout is closed.
    (socket) => answer.catch(() => socket.terminate()),
    reject,
  )
  return answer
}

function join(client: Socket<Side>, upstream: Socket<Side>): void {
  client.data.peer = upstream
  upstream.data.peer = client
  for (const socket of [client, upstream]) {
    socket.setNoDelay(true)
    socket.setKeepAlive(true, 30_000)
  }
  client.resume()
}

const relay = {
  data(socket: Socket<Side>, bytes: Buffer) {
    const { peer } = socket.data
    if (!peer) return
    if (peer.data.waiting.length > 0) {
      peer.data.waiting.push(Uint8Array.from(bytes))
      return
    }
    const taken = peer.write(bytes)
    if (taken < 0) return socket.terminate()
    if (taken < bytes.length) {
      peer.data.waiting.push(Uint8Array.from(bytes.subarray(taken)))
      socket.pause()
    }
  },
  drain(socket: Socket<Side>) {
    const { waiting, peer } = socket.data
    for (let bytes = waiting[0]; bytes; bytes = waiting[0]) {
      const taken = socket.write(bytes)
      if (taken < 0) {
        peer?.terminate()
        return
      }
      if (taken < bytes.length) {
        waiting[0] = bytes.subarray(taken)
        return
      }
      waiting.shift()
    }
    if (peer?.data.ended) socket.end()
    else peer?.resume()
  },
  /** One side is closed: the other is closed once all bytes are written. Half-closed connections are not kept. */
  close(socket: Socket<Side>) {
    socket.data.ended = true
    const { peer } = socket.data
    if (peer && peer.data.waiting.length === 0) peer.end()
  },
  error(socket: Socket<Side>) {
    socket.data.peer?.terminate()
  },
}

const keyOf = ({ host, port }: Upstream): string => `${host}:${port}`

function recent(time: number | undefined, now: number): boolean {
  return time !== undefined && now - time < 5000
}
