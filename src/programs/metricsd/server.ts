/** Listens with TLS 1.3, and bounds how many clients there are. */
import type { PeerCertificate } from 'node:tls'
import type { Answering } from './answer.ts'
import { type Bounds, Connection, usualBounds } from './connection.ts'
import type { Endpoint } from './endpoint.ts'

/** The certificate of the server, PEM. */
export interface Identity {
  readonly cert: string
  readonly key: string
}

/** Options of a server. */
export interface ServerOptions extends Answering {
  readonly endpoint: Endpoint
  readonly bounds?: Bounds
  /** Connections in all; beyond it the oldest that has not proved itself gives way, else the newest. */
  readonly connections?: number
}

type Socket = Bun.Socket<Connection> & { getPeerCertificate(): PeerCertificate; authorized: boolean }

const usualConnections = 64
const tls13 = 0x0304
const alpn = Buffer.from('\x08http/1.1')
// SSL_OP_NO_TICKET: a resumed session would not present its certificate again.
const noTickets = 0x4000

/** The server; it listens from its first identity on. */
export class MetricsServer {
  readonly #options: ServerOptions
  readonly #open = new Map<Connection, Socket>()
  #listener: Bun.TCPSocketListener<Connection> | undefined

  constructor(options: ServerOptions) {
    this.#options = options
  }

  /** The port it listens on. */
  get port(): number {
    return this.#listener?.port ?? 0
  }

  /** Listens, or continues with another certificate. Throws when the address is not available. */
  identify(identity: Identity): void {
    const { host, port, clientCA } = this.#options.endpoint
    const at = this.#listener?.port ?? port
    this.#listener?.stop(false)
    this.#listener = undefined
    this.#listener = Bun.listen<Connection>({
      hostname: host,
      port: at,
      tls: {
        ...identity,
        ...(clientCA !== undefined && { ca: clientCA }),
        requestCert: clientCA !== undefined,
        // A client without one may have a token.
        rejectUnauthorized: false,
        ALPNProtocols: alpn,
        minVersion: tls13,
        secureOptions: noTickets,
      } as Bun.TLSOptions,
      socket: {
        open: (socket) => this.#opened(socket as Socket),
        handshake: (socket, success) => {
          if (success) socket.data.greeted(this.#isCertified(socket as Socket))
          else socket.terminate()
        },
        data: (socket, chunk) => socket.data.receive(chunk),
        drain: (socket) => socket.data.drained(),
        close: (socket) => this.#closed(socket.data),
        error: (socket) => this.#closed(socket.data),
      },
    })
  }

  /** Ends all connections. */
  close(): void {
    this.#listener?.stop(true)
    for (const socket of this.#open.values()) socket.terminate()
  }

  #opened(socket: Socket): void {
    const wire = { write: (bytes: Uint8Array) => socket.write(bytes), end: () => socket.end(), terminate: () => socket.terminate() }
    const connection = new Connection(wire, this.#options, this.#options.bounds ?? usualBounds)
    socket.data = connection
    if (this.#open.size >= (this.#options.connections ?? usualConnections)) {
      const [evicted, unproved] = [...this.#open].find(([one]) => !one.isAdmitted) ?? []
      if (!evicted) {
        socket.terminate()
        return
      }
      this.#open.delete(evicted)
      unproved?.terminate()
    }
    this.#open.set(connection, socket)
  }

  #closed(connection: Connection | undefined): void {
    if (!connection) return
    connection.gone()
    this.#open.delete(connection)
  }

  #isCertified(socket: Socket): boolean {
    if (this.#options.endpoint.clientCA === undefined) return false
    return socket.authorized && socket.getPeerCertificate()?.raw !== undefined
  }
}
