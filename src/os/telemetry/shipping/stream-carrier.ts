/** Lines over TCP or TLS, each with a newline at its end. */
import { X509Certificate } from 'node:crypto'
import { within } from '../../../timing/within.ts'
import { isIp } from '../../../wire/ip.ts'
import { type Carrier, type CarrierContext, connectTimeout, stallTimeout } from './carrier.ts'
import type { Endpoint } from './endpoint.ts'

type Socket = Bun.Socket<undefined> & { readonly fd: number }

const keepAlive = 30_000

/** Connects; over TLS the receiver's certificate must be for its name and of a trusted authority. */
export async function streamCarrier(
  endpoint: Endpoint,
  { unacknowledged, outbound }: CarrierContext,
  signal: AbortSignal,
): Promise<Carrier> {
  const { protocol, host, port, url } = endpoint
  const opened = Promise.withResolvers<Socket>()
  opened.promise.catch(() => {}) // it may fail before it is awaited
  const lost = new AbortController()
  let drained = () => {}
  let socket: Socket | undefined
  const fail = (error: Error) => {
    opened.reject(error)
    lost.abort(error)
    drained()
  }
  const gone = (error?: Error | null) => fail(error ?? new Error(`the receiver at ${url} closed the connection`))
  const handlers: Bun.SocketHandler<undefined> = {
    open(connection) {
      socket = connection as Socket
      if (signal.aborted) socket.terminate()
      else if (protocol === 'tcp') opened.resolve(socket)
    },
    handshake(connection, _, error) {
      const refusal = untrusted(connection as Socket, host, error)
      if (refusal) fail(refusal)
      else opened.resolve(connection as Socket)
    },
    data() {}, // a receiver of lines has nothing to say
    drain: () => drained(),
    close: (_, error) => gone(error),
    error: (_, error) => gone(error),
    connectError: (_, error) => gone(error),
  }
  const abort = () => fail(new Error('the delivery was stopped'))
  signal.addEventListener('abort', abort, { once: true })
  const tls = protocol === 'tls' && {
    ca: outbound.roots(),
    rejectUnauthorized: false, // verified after the handshake, with the reason of a refusal
    ...(!isIp(host) && { serverName: host }), // an address is not a server name
  }
  Bun.connect({ hostname: host, port, socket: handlers, ...(tls && { tls }) }).catch(fail)
  try {
    const connected = await within(
      opened.promise,
      connectTimeout,
      () => new Error(`no connection to ${url} within ${connectTimeout / 1000} s`),
    )
    connected.setKeepAlive(true, keepAlive)
    return new StreamCarrier(connected, {
      url,
      lost: lost.signal,
      unacknowledged,
      drained: (call) => {
        drained = call
      },
    })
  } catch (error) {
    socket?.terminate()
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** Why the receiver is not trusted, if so. */
function untrusted(socket: Socket, host: string, error: Error | null): Error | undefined {
  const raw = (socket.getPeerCertificate() as { raw?: Uint8Array } | undefined)?.raw
  if (!raw) return error ?? new Error(`"${host}" presented no certificate`)
  const known = (error ?? (socket.authorized ? null : socket.getAuthorizationError())) as (Error & { code?: string }) | null
  const other = known === null || known.code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? otherName(host, new X509Certificate(raw)) : undefined
  if (other || (known === null && socket.authorized)) return other
  return new Error(`the certificate of "${host}" is not trusted: ${known?.code ?? known?.message ?? 'unknown authority'}`)
}

function otherName(host: string, certificate: X509Certificate): Error | undefined {
  if (isIp(host) ? certificate.checkIP(host) : certificate.checkHost(host)) return undefined
  return new Error(`the certificate is not for "${host}" but for ${certificate.subjectAltName ?? 'no address at all'}`)
}

interface StreamContext extends Pick<CarrierContext, 'unacknowledged'> {
  readonly url: string
  readonly lost: AbortSignal
  /** Has a function called when the socket has room, or is gone. */
  drained(call: () => void): void
}

class StreamCarrier implements Carrier {
  readonly #socket: Socket
  readonly #context: StreamContext
  #sent = 0
  #acknowledged = 0

  constructor(socket: Socket, context: StreamContext) {
    this.#socket = socket
    this.#context = context
  }

  get lost(): AbortSignal {
    return this.#context.lost
  }

  get sent(): number {
    return this.#sent
  }

  async send(texts: readonly string[]): Promise<void> {
    const { url, lost } = this.#context
    lost.throwIfAborted()
    const bytes = Buffer.from(`${texts.join('\n')}\n`)
    for (let at = 0; ; ) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#context.drained(resolve)
      const written = Math.max(0, this.#socket.write(bytes, at, bytes.length - at))
      at += written
      this.#sent += written
      if (at === bytes.length) return
      await within(promise, stallTimeout, () => new Error(`the receiver at ${url} took nothing for ${stallTimeout / 1000} s`))
      lost.throwIfAborted()
    }
  }

  /** The kernel counts encrypted bytes, of which there are more: over TLS this is less than was acknowledged, never more. */
  acknowledged(): number {
    const { fd } = this.#socket
    if (fd >= 0) this.#acknowledged = Math.max(this.#acknowledged, this.#sent - this.#context.unacknowledged(fd))
    return this.#acknowledged
  }

  close(): void {
    this.#socket.end()
  }
}
