import { messageOf } from '../wire/error-message.ts'
import { KubeError } from './errors.ts'

/** The address of an API server and the client's credentials; keys and certificates are PEM. */
export interface KubeAccess {
  server: string
  ca: string
  cert?: string
  key?: string
  token?: string
}

/** Options of a single call. */
export interface CallOptions {
  signal?: AbortSignal | undefined
  /** Timeout of the call in milliseconds. Default: 30 s. */
  timeout?: number
}

/** The body of a request; JSON unless its type is given. */
export interface RequestBody {
  body?: string
  contentType?: string
}

const defaultTimeout = 30_000

/** Requests to one API server over HTTPS; `close` ends all that are under way. */
export class KubeTransport {
  readonly server: string
  readonly #access: KubeAccess
  readonly #closing = new AbortController()

  constructor(access: KubeAccess) {
    this.server = access.server.replace(/\/+$/, '')
    this.#access = access
  }

  /** Sends a request and returns its response before the body; `where` names the request in errors. */
  async send(method: string, path: string, options: CallOptions & RequestBody, deadline: AbortSignal) {
    const { ca, cert, key, token } = this.#access
    const tls = { ca, ...(cert && key && { cert, key }) }
    const headers: Record<string, string> = { accept: 'application/json' }
    if (options.body !== undefined) headers['content-type'] = options.contentType ?? 'application/json'
    if (token) headers.authorization = `Bearer ${token}`
    const signal = AbortSignal.any([deadline, this.#closing.signal, ...(options.signal ? [options.signal] : [])])
    const where = `${method} ${this.server}${path.split('?')[0]}`
    try {
      const response = await fetch(`${this.server}${path}`, { method, headers, body: options.body, signal, tls, redirect: 'error' })
      return { response, where }
    } catch (error) {
      throw unreachable(where, error, deadline, options.signal)
    }
  }

  /** Sends any request and returns the parsed JSON of the response. */
  async request<T>(method: string, path: string, options: CallOptions & RequestBody = {}): Promise<T> {
    const deadline = AbortSignal.timeout(options.timeout ?? defaultTimeout)
    const { response, where } = await this.send(method, path, options, deadline)
    let text: string
    try {
      text = await response.text()
    } catch (error) {
      throw unreachable(where, error, deadline, options.signal)
    }
    if (!response.ok) throw refused(response.status, where, text)
    try {
      return JSON.parse(text) as T
    } catch {
      // healthz and similar endpoints answer in plain text
      if (!response.headers.get('content-type')?.includes('json')) return text as T
      throw new KubeError(response.status, 'Malformed', `${where}: the response is not JSON`)
    }
  }

  close(): void {
    this.#closing.abort(new KubeError(0, 'Closed', `client of ${this.server} is closed`))
  }
}

interface StatusResponse {
  readonly kind?: string
  readonly reason?: string
  readonly message?: string
  readonly details?: { readonly causes?: readonly { readonly message?: string }[] }
}

/** The error of a response whose status is not a success. */
export function refused(status: number, where: string, text: string): KubeError {
  try {
    const { kind, reason, message, details } = JSON.parse(text) as StatusResponse
    const causes = details?.causes?.flatMap((cause) => cause.message ?? []) ?? []
    if (kind === 'Status') return new KubeError(status, reason ?? 'Unknown', `${where}: ${message ?? `status ${status}`}`, causes)
  } catch {}
  return new KubeError(status, 'Unknown', `${where}: status ${status}: ${text.slice(0, 200).trim()}`)
}

/** The error of a request without a response. */
export function unreachable(where: string, error: unknown, deadline: AbortSignal, signal?: AbortSignal): unknown {
  if (signal?.aborted) return signal.reason
  if (deadline.aborted) return new KubeError(0, 'Timeout', `${where}: no answer in time`)
  const detail = messageOf(error)
  return new KubeError(0, 'Unreachable', `${where}: ${detail}`)
}
