/**
 * One HTTP/2 connection to a server: over a unix socket, plain TCP, or TLS with the server's name or address verified.
 * A bare IP address is no valid TLS server name, so it is not sent as one and is looked for in the certificate here.
 */
import { createHash, X509Certificate } from 'node:crypto'
import http2 from 'node:http2'
import net from 'node:net'
import tls from 'node:tls'
import { RpcError } from '../status.ts'

/** How to prove who is who. */
export interface TlsOptions {
  /** PEM of the authorities to trust; without it those of the system. */
  readonly ca?: string | Uint8Array
  /** PEM of our own certificate and key. */
  readonly cert?: string | Uint8Array
  readonly key?: string | Uint8Array
  /** Trust whatever the server shows: maintenance mode only. */
  readonly insecure?: boolean
  /** Trust only a certificate whose public key has one of these hashes: base64 of the SHA-256 of its SubjectPublicKeyInfo. */
  readonly fingerprint?: string | readonly string[]
  /** The name to look for in the server's certificate instead of the address. */
  readonly serverName?: string
}

/** Where a server is. */
export type Target = { readonly unix: string } | { readonly address: string; readonly tls?: TlsOptions; readonly defaultPort?: number }

/** A `host:port`, `[v6]:port`, bare host or bare IPv6 address. */
export function splitAddress(address: string, defaultPort: number): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(address)
  const host = match?.[1] ?? match?.[2] ?? address
  return { host, port: match?.[3] ? Number(match[3]) : defaultPort }
}

// The window stays at its usual size: a larger one is granted again and again to a stream that is paused (Bun 1.4.5), and memory with it.
const settings: http2.Settings = { enablePush: false }

/** Connects within `timeout` milliseconds. Throws RpcError Unavailable. */
export function dial(
  target: Target,
  { timeout = 20_000, signal }: { timeout?: number; signal?: AbortSignal } = {},
): Promise<http2.ClientHttp2Session> {
  const { promise, resolve, reject } = Promise.withResolvers<http2.ClientHttp2Session>()
  const where = 'unix' in target ? target.unix : target.address
  const socket = openSocket(target)
  let session: http2.ClientHttp2Session | undefined
  const fail = (error: unknown) => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
    session?.destroy()
    socket.destroy()
    const detail = error instanceof Error ? error.message : String(error)
    reject(error instanceof RpcError ? error : new RpcError('Unavailable', `connect to "${where}": ${detail}`, { cause: error }))
  }
  const abort = () => fail(new RpcError('Canceled', `connect to "${where}": canceled`))
  const timer = setTimeout(() => fail(new RpcError('Unavailable', `connect to "${where}": no answer within ${timeout} ms`)), timeout)
  signal?.addEventListener('abort', abort)
  socket.once('error', fail)
  socket.once('close', () => fail(new Error('connection closed')))
  socket.once('tls' in target && target.tls ? 'secureConnect' : 'connect', () => {
    const refusal = 'tls' in target && target.tls ? refuse(socket as tls.TLSSocket, target.tls, where) : undefined
    if (refusal) return fail(refusal)
    session = http2.connect('http://localhost', { createConnection: () => socket, settings })
    session.once('error', fail)
    session.once('connect', () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      session!.off('error', fail)
      session!.on('error', () => {})
      resolve(session!)
    })
  })
  return promise
}

function openSocket(target: Target): net.Socket {
  if ('unix' in target) return net.connect(target.unix)
  const { host, port } = splitAddress(target.address, target.defaultPort ?? 50_000)
  if (!target.tls) return net.connect({ host, port })
  const { ca, cert, key, insecure, fingerprint, serverName = host } = target.tls
  return tls.connect({
    host,
    port,
    ca: ca as string,
    cert: cert as string,
    key: key === undefined ? undefined : relabelled(key),
    ALPNProtocols: ['h2'],
    minVersion: 'TLSv1.2',
    servername: net.isIP(serverName) ? '' : serverName,
    rejectUnauthorized: !insecure && !fingerprint,
    checkServerIdentity: (_, certificate) => identityError(serverName, certificate),
  })
}

/** The field's label for Ed25519 keys is none that TLS knows; what it wraps is PKCS #8. */
function relabelled(key: string | Uint8Array): string {
  return Buffer.from(key).toString('latin1').replaceAll('ED25519 PRIVATE KEY', 'PRIVATE KEY')
}

function identityError(name: string, certificate: tls.PeerCertificate): Error | undefined {
  const x509 = new X509Certificate(certificate.raw)
  const holds = net.isIP(name) ? x509.checkIP(name) : x509.checkHost(name)
  if (holds) return undefined
  return new Error(`certificate is not for "${name}" but for ${x509.subjectAltName ?? 'no address at all'}`)
}

/** Why the server is not to be trusted after the handshake, if so. */
function refuse(socket: tls.TLSSocket, options: TlsOptions, where: string): Error | undefined {
  if (socket.alpnProtocol !== 'h2') return new Error('server does not speak HTTP/2')
  if (options.fingerprint) {
    const seen = fingerprintOf(socket.getPeerCertificate().raw)
    const accepted = [options.fingerprint].flat()
    return accepted.includes(seen) ? undefined : new Error(`certificate has fingerprint "${seen}", which is not among those accepted`)
  }
  if (options.insecure) return undefined
  if (!socket.authorized) return new Error(`certificate is not trusted: ${socket.authorizationError}`)
  return identityError(options.serverName ?? splitAddress(where, 0).host, socket.getPeerCertificate())
}

/** Base64 of the SHA-256 of a certificate's public key. */
export function fingerprintOf(certificate: Uint8Array): string {
  const key = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(key).digest('base64')
}
