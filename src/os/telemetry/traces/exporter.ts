/**
 * Sends spans to a collector, many at a time. A collector that is away or slow costs a bounded number of spans in memory;
 * what does not fit is counted and said once things are well again.
 */
import type { Logger } from '../../../cosi/log.ts'
import { exportRequest } from './otlp.ts'
import type { TraceSettings } from './settings.ts'
import type { Span } from './span.ts'

const maxWaiting = 2048
const maxBatch = 512
const every = 5000
const usualFirstPause = 1000
const longestPause = 60_000
/** Answers after which the same is sent again (OTLP specification, "OTLP/HTTP Response"). */
const passing = new Set([429, 502, 503, 504])

/** What the exporter does outside of itself. */
export interface ExporterDoors {
  readonly log: Logger
  readonly scope: { readonly name: string; readonly version: string }
  readonly every?: number
  /** Milliseconds until what was refused is sent again the first time; the pause doubles from there. */
  readonly firstPause?: number
}

/** Exports spans as long as it is not closed. */
export class TraceExporter {
  readonly #waiting: Span[] = []
  #timer?: ReturnType<typeof setTimeout>
  #sending?: Promise<void>
  #pause = 0
  #lost = 0
  #failing = false
  readonly #closed = new AbortController()

  constructor(
    readonly settings: TraceSettings,
    readonly doors: ExporterDoors,
  ) {}

  get #firstPause(): number {
    return this.doors.firstPause ?? usualFirstPause
  }

  /** Takes a span; never waits. */
  add(span: Span): void {
    if (this.#closed.signal.aborted) return
    if (this.#waiting.length >= maxWaiting) {
      this.#waiting.shift()
      this.#lost++
    }
    this.#waiting.push(span)
    if (this.#waiting.length >= maxBatch && this.#pause === 0) this.#send()
    else this.#timer ??= setTimeout(() => this.#send(), Math.max(this.#pause, this.doors.every ?? every)).unref()
  }

  /** Forgets what was not sent yet. */
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
        this.#timer ??= setTimeout(() => this.#send(), Math.max(this.#pause, this.#firstPause)).unref()
    })
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#closed.signal.aborted) {
      const batch = this.#waiting.slice(0, maxBatch)
      const problem = await this.#post(batch)
      if (problem === 'again') return
      // What came meanwhile may have pushed out the oldest of these.
      const sent = new Set(batch)
      while (this.#waiting[0] && sent.has(this.#waiting[0])) this.#waiting.shift()
    }
  }

  async #post(spans: readonly Span[]): Promise<'again' | undefined> {
    const { settings, doors } = this
    try {
      const response = await fetch(settings.url, {
        method: 'POST',
        headers: { ...settings.headers, 'content-type': 'application/json' },
        body: JSON.stringify(exportRequest(spans, settings.resource, doors.scope)),
        redirect: 'error',
        signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(settings.timeout)]),
      })
      await response.body?.cancel()
      if (passing.has(response.status)) return this.#failed(`the collector answers ${response.status}`)
      if (response.ok) this.#well()
      else {
        // It will not take these however often they are sent.
        this.#lost += spans.length
        this.#failed(`the collector answers ${response.status}`)
      }
      return undefined
    } catch (error) {
      return this.#failed((error as Error).message)
    }
  }

  #well(): void {
    if (this.#failing) this.doors.log.info('traces are exported again', { lost: this.#lost })
    this.#failing = false
    this.#lost = 0
    this.#pause = 0
  }

  #failed(error: string): 'again' {
    if (!this.#failing && !this.#closed.signal.aborted) this.doors.log.warn('traces are not exported, it is tried again', { error })
    this.#failing = true
    this.#pause = Math.min(longestPause, Math.max(this.#firstPause, this.#pause * 2))
    return 'again'
  }
}
