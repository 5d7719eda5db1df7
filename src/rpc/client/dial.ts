/**
 * One HTTP/2 connection to a server: over a unix socket, plain TCP, or TLS with verification of the server's name or address.
 * A bare IP address is not a valid TLS server name, so it is not sent and is compared with the certificate here.
 */
import { createHash, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { PeerCertificate } from 'node:tls'
import { messageOf } from '../../wire/error-message.ts'
import { splitHostPort } from '../../wire/host-port.ts'
import type { PeerSocket } from '../http2/output.ts'
import { Session } from '../http2/session.ts'
import { ConnectError, RpcError } from '../status.ts'
import { openTunnel } from './tunnel.ts'

/** TLS credentials and verification. */
export interface TlsOptions {
  /** PEM of the trusted authorities. Default: those of the system. */
  readonly ca?: string | Uint8Array | undefined
  /** PEM of the client's certificate and key. */
  readonly cert?: string | Uint8Array | undefined
  readonly key?: string | Uint8Array | undefined
  /** Skips verification of the server: maintenance mode only. */
  readonly insecure?: boolean
  /** Trusts only a certificate whose public key has one of these hashes: base64 of the SHA-256 of its SubjectPublicKeyInfo. */
  readonly fingerprint?: string | readonly string[] | undefined
  /** The name to verify in the server's certificate instead of the address. */
  readonly serverName?: string
}

/** The address of a server. */
export type Target =
  | { readonly unix: string }
  | {
      readonly address: string
      readonly tls?: TlsOptions | undefined
      readonly defaultPort?: number
      /** URL of an HTTP proxy that the connection goes through. */
      readonly proxy?: string
    }

type Socket = Bun.Socket<undefined> & PeerSocket

/** Connects within `timeout` milliseconds and waits for the server's SETTINGS. Throws RpcError Unavailable. */
export function dial(target: Target, { timeout = 20_000, signal }: { timeout?: number; signal?: AbortSignal } = {}): Promise<Session> {
  const { promise, resolve, reject } = Promise.withResolvers<Session>()
  const where = 'unix' in target ? target.unix : target.address
  const tls = 'tls' in target ? target.tls : undefined
  let session: Session | undefined
  let raw: Socket | undefined
  let over = false
  const settle = () => {
    over = true
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
  const fail = (error: unknown) => {
    if (over) return
    settle()
    session?.destroy()
    raw?.terminate()
    const detail = messageOf(error)
    reject(error instanceof RpcError ? error : new ConnectError('Unavailable', `connect to "${where}": ${detail}`, { cause: error }))
  }
  const abort = () => fail(new ConnectError('Canceled', `connect to "${where}": canceled`))
  const timer = setTimeout(() => fail(new ConnectError('Unavailable', `connect to "${where}": no answer within ${timeout} ms`)), timeout)
  signal?.addEventListener('abort', abort)
  const begin = (socket: Socket) => {
    if (over) return
    const opened = new Session(socket, { side: 'client' })
    session = opened
    // With TLS 1.3 a client learns only now that its certificate was refused.
    const hint = tls?.cert ? '; the server may have refused our certificate' : ''
    opened.whenClosed((error) => fail(new Error(`${error?.message ?? 'connection closed'}${hint}`, { cause: error })))
    opened.whenSettled(() => {
      if (over) return
      settle()
      resolve(opened)
    })
  }
  const gone = (error?: Error | null) => {
    session?.gone(error ?? undefined)
    fail(error ?? new Error('connection closed'))
  }
  const handlers: Bun.SocketHandler<undefined> = {
    open(socket) {
      raw = socket as Socket
      if (over) socket.terminate()
      else if (!tls) begin(raw)
    },
    handshake(opened, _, error) {
      const socket = opened as Socket
      const refusal = tls && refuse(socket, tls, where, error)
      if (refusal) return fail(refusal)
      socket.setKeepAlive(true, 30_000)
      socket.setNoDelay(true)
      begin(socket)
    },
    data: (_, chunk) => session?.receive(chunk),
    drain: () => session?.drained(),
    close: (_, error) => gone(error),
    error: (_, error) => gone(error),
    connectError: (_, error) => fail(error),
  }
  const connected = (socket: Bun.Socket<undefined>) => {
    raw = socket as Socket
    if (over) socket.terminate()
  }
  open(target, handlers, connected).catch(fail)
  return promise
}

async function open(
  target: Target,
  socket: Bun.SocketHandler<undefined>,
  connected: (socket: Bun.Socket<undefined>) => void,
): Promise<unknown> {
  if ('unix' in target) return Bun.connect({ unix: target.unix, socket })
  const { host: hostname, port } = splitHostPort(target.address, target.defaultPort ?? 50_000)
  const tls = target.tls && tlsOptions(target.tls, hostname)
  if (target.proxy) return openTunnel({ proxy: target.proxy, hostname, port, tls, connected, handlers: socket })
  return Bun.connect({ hostname, port, socket, ...(tls && { tls }) })
}

function tlsOptions({ ca, cert, key, serverName }: TlsOptions, hostname: string): Bun.TLSOptions {
  const name = serverName ?? hostname
  const options = {
    ...(ca !== undefined && { ca: ca as string }),
    ...(cert !== undefined && { cert: cert as string }),
    ...(key !== undefined && { key: relabelled(key) }),
    ALPNProtocols: Buffer.from('\x02h2'),
    minVersion: 0x0303, // TLS 1.2
    // An address is not a server name: none is sent then.
    ...(!isIP(name) && { serverName: name }),
    // The server is verified below, with its whole certificate.
    rejectUnauthorized: false,
  }
  return options as Bun.TLSOptions
}

/** The PEM label of Ed25519 keys in configurations is unknown to TLS libraries; its contents are PKCS #8. */
function relabelled(key: string | Uint8Array): string {
  return Buffer.from(key).toString('latin1').replaceAll('ED25519 PRIVATE KEY', 'PRIVATE KEY')
}

function identityError(name: string, certificate: Uint8Array): Error | undefined {
  const x509 = new X509Certificate(certificate)
  const holds = isIP(name) ? x509.checkIP(name) : x509.checkHost(name)
  if (holds) return undefined
  return new Error(`certificate is not for "${name}" but for ${x509.subjectAltName ?? 'no address at all'}`)
}

/** Why the server is not trusted after the handshake, if so. */
function refuse(socket: Socket, options: TlsOptions, where: string, error: Error | null): Error | undefined {
  const certificate = (socket.getPeerCertificate() as PeerCertificate | undefined)?.raw
  if (!certificate) return error ?? new Error('the server presented no certificate')
  if (socket.alpnProtocol !== 'h2') return new Error('server does not speak HTTP/2')
  if (options.fingerprint) {
    const seen = fingerprintOf(certificate)
    const accepted = [options.fingerprint].flat()
    return accepted.includes(seen) ? undefined : new Error(`certificate has fingerprint "${seen}", which is not among those accepted`)
  }
  if (options.insecure) return undefined
  if (error || !socket.authorized) {
    const other = identityError(options.serverName ?? splitHostPort(where, 0).host, certificate)
    if ((error as { code?: string } | null)?.code === 'ERR_TLS_CERT_ALTNAME_INVALID' && other) return other
    const known = (error ?? socket.getAuthorizationError()) as (Error & { code?: string }) | null
    return new Error(`certificate is not trusted: ${known?.code ?? known?.message ?? 'unknown authority'}`)
  }
  return identityError(options.serverName ?? splitHostPort(where, 0).host, certificate)
}

/** Base64 of the SHA-256 of a certificate's public key. */
export function fingerprintOf(certificate: Uint8Array): string {
  const key = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(key).digest('base64')
}
