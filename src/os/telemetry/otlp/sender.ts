/**
 * Sends telemetry to a collector (OTLP specification 1.9). One message in three forms: gRPC, its bytes over HTTP, and JSON over HTTP,
 * where identifiers are hexadecimal.
 */
import { systemClock } from '../../../cosi/clock.ts'
import { type Channel, connect } from '../../../rpc/client/channel.ts'
import { decode, encode } from '../../../rpc/codec.ts'
import type { Methods } from '../../../rpc/messages.ts'
import { methodShape } from '../../../rpc/schema.ts'
import type { Init } from '../../../rpc/server/method.ts'
import { RpcError, type StatusName } from '../../../rpc/status.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { boundedBody } from '../../../wire/http/bounded-body.ts'
import type { Outbound } from '../../outbound.ts'
import type { Protocol } from '../resources/otlp-protocols.ts'

const methods = {
  traces: 'opentelemetry.proto.collector.trace.v1.TraceService/Export',
  metrics: 'opentelemetry.proto.collector.metrics.v1.MetricsService/Export',
  logs: 'opentelemetry.proto.collector.logs.v1.LogsService/Export',
} as const satisfies Record<string, keyof Methods>

/** What is sent. */
export type Signal = keyof typeof methods

/** The message of a signal. */
export type ExportRequest<S extends Signal> = Init<Methods[(typeof methods)[S]]['request']>

/** A collector. */
export interface Collector {
  readonly protocol: Protocol
  /** Where each signal goes: with gRPC only scheme, host and port count. */
  readonly traces: string
  readonly metrics: string
  readonly logs: string
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds for the answer to a request. */
  readonly timeout: number
}

/** What became of a request. */
export type Outcome =
  /** The collector has it, but for so many spans, points or records. */
  | { readonly kind: 'taken'; readonly rejected: number; readonly why: string }
  /** It must be sent again, not before so many milliseconds. */
  | { readonly kind: 'later'; readonly why: string; readonly after?: number }
  /** It will never be taken. */
  | { readonly kind: 'refused'; readonly why: string }

/** A connection to a collector. */
export interface Sender {
  /** Never rejects. */
  send<S extends Signal>(signal: S, request: ExportRequest<S>, abort: AbortSignal): Promise<Outcome>
  close(): void
}

const answerLimit = 64 * 1024
/** Milliseconds that a collector may ask to wait at most. */
const longestWait = 5 * 60_000
/** HTTP status codes after which a request is sent again. */
const passingCodes = new Set([429, 502, 503, 504])
const passingStatuses = new Set<StatusName>([
  'Canceled',
  'DeadlineExceeded',
  'ResourceExhausted',
  'Aborted',
  'OutOfRange',
  'Unavailable',
  'DataLoss',
])

/** Opens the connection at the first request. */
export const senderTo = (collector: Collector, outbound: Pick<Outbound, 'fetch' | 'target'>): Sender =>
  collector.protocol === 'grpc' ? new GrpcSender(collector, outbound) : new HttpSender(collector, outbound)

class GrpcSender implements Sender {
  readonly #collector: Collector
  readonly #outbound: Pick<Outbound, 'target'>
  readonly #channels = new Map<string, Channel>()

  constructor(collector: Collector, outbound: Pick<Outbound, 'target'>) {
    this.#collector = collector
    this.#outbound = outbound
  }

  async send<S extends Signal>(signal: S, request: ExportRequest<S>, abort: AbortSignal): Promise<Outcome> {
    const { headers, timeout } = this.#collector
    try {
      const reply = await this.#channel(this.#collector[signal]).unary(methods[signal], request as never, {
        metadata: headers,
        deadline: timeout,
        signal: abort,
      })
      return taken(reply)
    } catch (error) {
      const { status, message } = error instanceof RpcError ? error : new RpcError('Unavailable', messageOf(error))
      const why = `the collector answers ${status}: ${message}`
      return passingStatuses.has(status) ? { kind: 'later', why } : { kind: 'refused', why }
    }
  }

  #channel(url: string): Channel {
    const { protocol, host } = new URL(url)
    const known = this.#channels.get(host)
    if (known) return known
    const channel = connect(this.#outbound.target(host, { plain: protocol === 'http:' }))
    this.#channels.set(host, channel)
    return channel
  }

  close(): void {
    for (const channel of this.#channels.values()) channel.close()
  }
}

class HttpSender implements Sender {
  readonly #collector: Collector
  readonly #outbound: Pick<Outbound, 'fetch'>

  constructor(collector: Collector, outbound: Pick<Outbound, 'fetch'>) {
    this.#collector = collector
    this.#outbound = outbound
  }

  async send<S extends Signal>(signal: S, request: ExportRequest<S>, abort: AbortSignal): Promise<Outcome> {
    const { headers, timeout, protocol } = this.#collector
    const shape = methodShape(methods[signal])
    const json = protocol === 'http/json'
    try {
      const response = await this.#outbound.fetch(this.#collector[signal], {
        method: 'POST',
        headers: { ...headers, 'content-type': json ? 'application/json' : 'application/x-protobuf' },
        body: json ? JSON.stringify(request, hexadecimal) : encode(shape.request, request),
        redirect: 'error',
        signal: AbortSignal.any([abort, AbortSignal.timeout(timeout)]),
      })
      const answer = await boundedBody(response, answerLimit).catch(() => Buffer.alloc(0))
      const why = `the collector answers ${response.status}`
      if (passingCodes.has(response.status))
        return { kind: 'later', why, ...waitOf(response.headers.get('retry-after'), systemClock.now().getTime()) }
      if (!response.ok) return { kind: 'refused', why }
      return taken(replyOf(() => (json ? JSON.parse(answer.toString()) : decode(shape.reply, answer))))
    } catch (error) {
      return { kind: 'later', why: messageOf(error) }
    }
  }

  close(): void {}
}

/** Only identifiers are bytes. */
const hexadecimal = (_: string, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value)

/** The request was taken, whether or not the answer can be read. */
function replyOf(read: () => unknown): unknown {
  try {
    return read()
  } catch {
    return {}
  }
}

function taken(reply: unknown): Outcome {
  const { partialSuccess } = (reply ?? {}) as { partialSuccess?: Partial<Record<string, unknown>> | null }
  const rejected = Number(partialSuccess?.rejectedSpans ?? partialSuccess?.rejectedDataPoints ?? partialSuccess?.rejectedLogRecords ?? 0)
  const why = partialSuccess?.errorMessage
  return { kind: 'taken', rejected: Math.max(rejected, 0), why: typeof why === 'string' ? why.slice(0, 500) : '' }
}

/** The header Retry-After in seconds or as a date (RFC 9110, section 10.2.3). */
function waitOf(header: string | null, now: number): { after?: number } {
  if (header === null) return {}
  const milliseconds = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now
  return Number.isFinite(milliseconds) ? { after: Math.min(longestWait, Math.max(0, milliseconds)) } : {}
}
