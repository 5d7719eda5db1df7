/** The reply to one request. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Logger } from '../../cosi/log.ts'
import type { RequestHead } from '../../wire/http/request-head.ts'
import { formatFor, takesGzip } from './accept.ts'
import type { Endpoint } from './endpoint.ts'
import type { Scrapes } from './scrapes.ts'

/** A reply. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Whether the connection ends with it. */
  readonly close: boolean
}

/** What replies are made from. */
export interface Answering {
  readonly endpoint: Pick<Endpoint, 'tokenDigest'>
  readonly scrapes: Pick<Scrapes, 'get'>
  readonly log: Logger
}

const reasons: Readonly<Record<number, string>> = {
  200: 'OK',
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  405: 'Method Not Allowed',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
}

/** A reply of one line; it ends the connection unless it is an answer to a client that was admitted. */
export function refusal(status: number, line: string, headers: Reply['headers'] = {}, close = true): Reply {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8', ...headers }, body: Buffer.from(`${line}\n`), close }
}

/** Answers a request; `certified` is whether the client has proved itself by a certificate. */
export async function answer(head: RequestHead, certified: boolean, { endpoint, scrapes, log }: Answering): Promise<Reply> {
  const { method, target, minor, headers } = head
  if (minor === 1 && !headers.has('host')) return refusal(400, 'a request of HTTP/1.1 has a header "Host"')
  if (headers.has('transfer-encoding') || (headers.get('content-length') ?? '0') !== '0') return refusal(400, 'a body is not expected')
  if (!certified && !hasToken(headers.get('authorization'), endpoint.tokenDigest))
    return refusal(401, 'a client certificate or a bearer token that the TelemetryConfig of this node admits is required', {
      'www-authenticate': 'Bearer realm="metrics"',
    })
  const close =
    minor === 0 ||
    (headers.get('connection') ?? '')
      .toLowerCase()
      .split(/\s*,\s*/)
      .includes('close')
  if (method !== 'GET' && method !== 'HEAD') return refusal(405, 'only GET and HEAD', { allow: 'GET, HEAD' }, close)
  if (target.replace(/\?.*$/, '') !== '/metrics') return refusal(404, 'metrics are at /metrics', {}, close)
  try {
    const { type, plain, gzip } = await scrapes.get(formatFor(headers.get('accept') ?? ''))
    const compressed = takesGzip(headers.get('accept-encoding') ?? '')
    const encoding = compressed ? { 'content-encoding': 'gzip' } : {}
    return {
      status: 200,
      headers: { 'content-type': type, vary: 'Accept, Accept-Encoding', 'cache-control': 'no-store', ...encoding },
      body: compressed ? gzip : plain,
      close,
    }
  } catch (error) {
    log.warn('read metrics failed', { error })
    return refusal(503, 'the metrics of this node cannot be read now', { 'retry-after': '5' }, close)
  }
}

/** The bytes of a reply; to HEAD without its body. */
export function encoded({ status, headers, body, close }: Reply, head = false): Uint8Array {
  const lines = Object.entries({ ...headers, 'content-length': String(body.length), ...(close && { connection: 'close' }) })
  const text = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const start = Buffer.from(`HTTP/1.1 ${status} ${reasons[status] ?? ''}\r\n${text}\r\n`)
  return head ? start : Buffer.concat([start, body])
}

/** Compares digests: neither the time nor a length leaks information about the token. */
function hasToken(authorization: string | undefined, digest: Buffer | undefined): boolean {
  const [, token] = /^bearer +(\S+)$/i.exec(authorization ?? '') ?? []
  return token !== undefined && digest !== undefined && timingSafeEqual(createHash('sha256').update(token).digest(), digest)
}
