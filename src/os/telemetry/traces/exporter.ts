/**
 * Sends spans to a collector in batches. A slow or unreachable collector costs a bounded number of spans in memory. Dropped
 * spans are counted, and the count is logged when the export works again.
 */
import type { Logger } from '../../../cosi/log.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Outbound } from '../../outbound.ts'
import { exportRequest } from './otlp.ts'
import type { TraceSettings } from './settings.ts'
import type { Span } from './span.ts'

const maxWaiting = 2048
const maxBatch = 512
const every = 5000
const defaultFirstDelay = 1000
const longestDelay = 60_000
/** Status codes after which the same request is retried (OTLP specification, "OTLP/HTTP Response"). */
const passing = new Set([429, 502, 503, 504])

/** The exporter's dependencies. */
export interface ExporterDependencies {
  readonly log: Logger
  readonly scope: { readonly name: string; readonly version: string }
  readonly outbound: Pick<Outbound, 'fetch'>
  readonly every?: number
  /** The first retry delay in milliseconds; it doubles with each failure. */
  readonly firstDelay?: number
}

/** Exports spans until it is closed. */
export class TraceExporter {
  readonly #waiting: Span[] = []
  #timer?: ReturnType<typeof setTimeout> | undefined
  #sending?: Promise<void> | undefined
  #delay = 0
  #lost = 0
  #failing = false
  readonly #closed = new AbortController()

  constructor(
    readonly settings: TraceSettings,
    readonly dependencies: ExporterDependencies,
  ) {}

  get #firstDelay(): number {
    return this.dependencies.firstDelay ?? defaultFirstDelay
  }

  /** Queues a span; never waits. */
  add(span: Span): void {
    if (this.#closed.signal.aborted) return
    if (this.#waiting.length >= maxWaiting) {
      this.#waiting.shift()
      this.#lost++
    }
    this.#waiting.push(span)
    if (this.#waiting.length >= maxBatch && this.#delay === 0) this.#send()
    else this.#timer ??= setTimeout(() => this.#send(), Math.max(this.#delay, this.dependencies.every ?? every)).unref()
  }

  /** Drops the spans that were not sent yet. */
  close(): void {
    clearTimeout(this.#timer)
    this.#closed.abort()
    this.#waiting.length = 0
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
      if (this.#waiting.length > 0 && !this.#closed.signal.aborted)
        this.#timer ??= setTimeout(() => this.#send(), Math.max(this.#delay, this.#firstDelay)).unref()
    })
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#closed.signal.aborted) {
      const batch = this.#waiting.slice(0, maxBatch)
      const problem = await this.#post(batch)
      if (problem === 'again') return
      // Spans added meanwhile may have pushed out the oldest of these.
      const sent = new Set(batch)
      while (this.#waiting[0] && sent.has(this.#waiting[0])) this.#waiting.shift()
    }
  }

  async #post(spans: readonly Span[]): Promise<'again' | undefined> {
    const { settings, dependencies } = this
    try {
      const response = await dependencies.outbound.fetch(settings.url, {
        method: 'POST',
        headers: { ...settings.headers, 'content-type': 'application/json' },
        body: JSON.stringify(exportRequest(spans, settings.resource, dependencies.scope)),
        redirect: 'error',
        signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(settings.timeout)]),
      })
      await response.body?.cancel()
      if (passing.has(response.status)) return this.#failed(`the collector answers ${response.status}`)
      if (response.ok) this.#well()
      else {
        // The collector rejects these however often they are sent.
        this.#lost += spans.length
        this.#failed(`the collector answers ${response.status}`)
      }
      return undefined
    } catch (error) {
      return this.#failed(messageOf(error))
    }
  }

  #well(): void {
    if (this.#failing) this.dependencies.log.info('trace export recovered', { lost: this.#lost })
    this.#failing = false
    this.#lost = 0
    this.#delay = 0
  }

  #failed(error: string): 'again' {
    if (!this.#failing && !this.#closed.signal.aborted) this.dependencies.log.warn('trace export failed, retrying', { error })
    this.#failing = true
    this.#delay = Math.min(longestDelay, Math.max(this.#firstDelay, this.#delay * 2))
    return 'again'
  }
}
