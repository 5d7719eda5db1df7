/**
 * WireGuard over gRPC: datagrams of a WireGuard link go through a stream of the management server. The link, the kernel's or one in
 * user space, has a socket of the loopback for its peer's endpoint, and what arrives there goes through the stream.
 */
import type { Logger } from '../../cosi/log.ts'
import { connect } from '../../rpc/client/channel.ts'
import type { Target } from '../../rpc/client/dial.ts'
import { RpcError } from '../../rpc/status.ts'
import { pause } from '../../timing/pause.ts'
import { formatHostPort } from '../../wire/host-port.ts'

/** Datagrams that wait for the stream; the oldest is dropped. */
const maxWaiting = 100
/** Milliseconds until the next stream: after a refusal, which other connections of this machine may cause, and after any other end. */
const refusedInterval = 5_000
const lostInterval = 10_000
const loopback = '127.0.0.1'

/** Where a stream leads. */
export interface TunnelEnd {
  target(): Target
  /** What stands for the machine, as [address]:port. */
  readonly nodeAddress: string
}

/** The socket of the loopback, and the stream behind it. */
export class GrpcTunnel {
  readonly #waiting: Uint8Array[] = []
  #socket: Bun.udp.Socket<'buffer'> | undefined
  /** The port of the WireGuard link, once it has sent. */
  #linkPort: number | undefined
  #wake = () => {}
  #restart = new AbortController()

  constructor(private readonly interval = { refused: refusedInterval, lost: lostInterval }) {}

  /** The endpoint for the link. Rejects with SystemError. */
  async endpoint(): Promise<string> {
    this.#socket ??= await Bun.udpSocket({
      hostname: loopback,
      socket: {
        data: (_, datagram, port) => {
          this.#linkPort = port
          if (this.#waiting.push(new Uint8Array(datagram)) > maxWaiting) this.#waiting.shift()
          this.#wake()
        },
        // The link may be gone for a moment: WireGuard repeats what is lost.
        error() {},
      },
    })
    return formatHostPort(loopback, this.#socket.port)
  }

  /** Replaces a stream that does not carry any more. */
  restart(): void {
    this.#restart.abort()
  }

  /** Keeps a stream until the signal; each problem is reported, and each stream that stands. Never rejects. */
  async run({ target, nodeAddress }: TunnelEnd, log: Logger, report: (error?: unknown) => void, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#restart = new AbortController()
      let wait = 0
      try {
        await this.#stream(target(), nodeAddress, () => report(), AbortSignal.any([signal, this.#restart.signal]))
        wait = this.interval.lost
      } catch (error) {
        if (signal.aborted) return
        if (!this.#restart.signal.aborted) {
          log.warn('tunnel to the management server ended', { error })
          report(error)
          wait = isRefusal(error) ? this.interval.refused : this.interval.lost
        }
      }
      await pause(wait, AbortSignal.any([signal, this.#restart.signal]))
    }
  }

  /** Ends the socket of the loopback. */
  close(): void {
    this.#socket?.close()
    this.#socket = undefined
    this.#linkPort = undefined
    this.#waiting.length = 0
  }

  async #stream(target: Target, nodeAddress: string, carries: () => void, signal: AbortSignal): Promise<void> {
    const ended = new AbortController()
    const either = AbortSignal.any([signal, ended.signal])
    const channel = connect(target, { metadata: { 'x-siderolink-ipv6-addr': nodeAddress } })
    try {
      const requests = this.#datagrams(either)
      let isFirst = true
      for await (const { data } of channel.bidi('sidero.link.WireGuardOverGRPCService/CreateStream', requests, { signal })) {
        if (isFirst) carries()
        isFirst = false
        if (this.#linkPort !== undefined) this.#socket?.send(data, this.#linkPort, loopback)
      }
    } finally {
      ended.abort()
      channel.close()
    }
  }

  async *#datagrams(signal: AbortSignal): AsyncGenerator<{ data: Uint8Array }, void> {
    const end = () => this.#wake()
    signal.addEventListener('abort', end)
    try {
      while (!signal.aborted) {
        const data = this.#waiting.shift()
        if (data) yield { data }
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
      }
    } finally {
      signal.removeEventListener('abort', end)
    }
  }
}

/** Another connection has the address, or the server does not know it (yet). */
const isRefusal = (error: unknown) => error instanceof RpcError && (error.status === 'Aborted' || error.status === 'PermissionDenied')
