/** A connection through an HTTP proxy, by the method CONNECT (RFC 9110, section 9.3.6). */
import { bracketed, formatHostPort, unbracketed } from '../../wire/host-port.ts'

type Handlers = Bun.SocketHandler<undefined>

/** Where a tunnel leads, and what is done with its connection. */
export interface TunnelOptions {
  /** The proxy's URL; user and password are sent to it. */
  readonly proxy: string
  readonly hostname: string
  readonly port: number
  /** TLS with the server behind the proxy; absent for a plain connection. */
  readonly tls?: Bun.TLSOptions | undefined
  /** Receives the connection to the proxy as soon as it is open, so that it can be ended. */
  connected(socket: Bun.Socket<undefined>): void
  /** Receives the connection to the server. */
  readonly handlers: Handlers
}

/** Bytes of a proxy's answer. */
const longestAnswer = 8192

/** Connects; later failures are reported to the handlers. Throws when the proxy cannot be used or reached. */
export function openTunnel({ proxy, hostname, port, tls, connected, handlers }: TunnelOptions): Promise<unknown> {
  const { protocol, hostname: proxyHost, port: proxyPort, username, password } = new URL(proxy)
  if (protocol !== 'http:') throw new Error(`proxy has scheme "${protocol.slice(0, -1)}", which gRPC does not support: use http`)
  const place = formatHostPort(hostname, port)
  const credentials = username && `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  const authorization = credentials && `Proxy-Authorization: Basic ${Buffer.from(credentials).toString('base64')}\r\n`
  let answer = Buffer.alloc(0)
  let open = false
  const fail = (socket: Bun.Socket<undefined>, problem: string) => {
    handlers.error?.(socket, new Error(`proxy "${bracketed(proxyHost)}": ${problem}`))
    socket.terminate()
  }
  const received = (socket: Bun.Socket<undefined>, chunk: Buffer) => {
    // After the start of TLS these are its records, which its own handlers receive decrypted.
    if (open) return tls ? undefined : handlers.data?.(socket, chunk)
    answer = Buffer.concat([answer, chunk])
    const end = answer.indexOf('\r\n\r\n')
    if (end < 0) return answer.length > longestAnswer ? fail(socket, 'the answer to CONNECT is too long') : undefined
    const [line = ''] = answer.toString('latin1', 0, end).split('\r\n')
    if (!/^HTTP\/1\.[01] 2\d\d\b/.test(line)) return fail(socket, `CONNECT ${place} was refused: ${line.slice(0, 200)}`)
    open = true
    const rest = answer.subarray(end + 4)
    if (tls) {
      if (rest.length > 0) return fail(socket, 'data before the start of TLS')
      socket.upgradeTLS({ data: undefined, tls, socket: handlers })
      return
    }
    handlers.open?.(socket)
    if (rest.length > 0) handlers.data?.(socket, rest)
  }
  return Bun.connect({
    hostname: unbracketed(proxyHost),
    port: Number(proxyPort || 80),
    socket: {
      open(socket) {
        connected(socket)
        socket.write(`CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n${authorization}\r\n`)
      },
      data: received,
      drain(socket) {
        if (open && !tls) handlers.drain?.(socket)
      },
      close(socket, error) {
        if (!open || !tls) handlers.close?.(socket, error)
      },
      error(socket, error) {
        if (!open || !tls) handlers.error?.(socket, error)
      },
      ...(handlers.connectError && { connectError: handlers.connectError }),
    },
  })
}
