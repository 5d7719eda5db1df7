/** One unit of work in a trace (OpenTelemetry's data model of traces). */
export interface Span {
  /** 32 hexadecimal digits, common to everything that a caller's request led to. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  readonly parentSpanId?: string | undefined
  readonly name: string
  /** A call that was served, unless it is a part of what the machine does by itself. */
  readonly kind?: 'internal'
  /** Milliseconds since 1970, with fractions. */
  readonly start: number
  readonly end: number
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  /** The error, if it failed. */
  readonly failure?: string | undefined
}

/** Parses the caller's context in the W3C Trace Context form `version-trace-parent-flags`; undefined when it is invalid. */
export function parseTraceParent(header: string | undefined): { traceId: string; parentSpanId: string; sampled: boolean } | undefined {
  const found = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:$|-)/.exec(header ?? '')
  const [, traceId = '', parentSpanId = '', flags = ''] = found ?? []
  if (!found || /^0+$/.test(traceId) || /^0+$/.test(parentSpanId)) return undefined
  return { traceId, parentSpanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** Random hexadecimal digits for so many bytes. */
export function randomId(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('hex')
}
