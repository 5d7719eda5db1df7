/** Spans in the JSON form of OTLP (opentelemetry-proto, trace/v1): 64-bit numbers are strings, ids hexadecimal. */
import type { Span } from './span.ts'

const kinds = { server: 2 }
const statuses = { unset: 0, error: 2 }

/** The body of one export. */
export function exportRequest(
  spans: readonly Span[],
  resource: Readonly<Record<string, string>>,
  scope: { name: string; version: string },
): object {
  return {
    resourceSpans: [{ resource: { attributes: attributes(resource) }, scopeSpans: [{ scope, spans: spans.map(shown) }] }],
  }
}

function shown({ traceId, spanId, parentSpanId, name, start, end, attributes: given, failure }: Span): object {
  return {
    traceId,
    spanId,
    ...(parentSpanId && { parentSpanId }),
    name,
    kind: kinds.server,
    startTimeUnixNano: nanoseconds(start),
    endTimeUnixNano: nanoseconds(end),
    attributes: attributes(given),
    status: failure === undefined ? { code: statuses.unset } : { code: statuses.error, message: failure },
  }
}

function attributes(values: Readonly<Record<string, string | number | boolean>>): object[] {
  return Object.entries(values).map(([key, value]) => ({ key, value: anyValue(value) }))
}

function anyValue(value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

function nanoseconds(milliseconds: number): string {
  return String(BigInt(Math.round(milliseconds * 1000)) * 1000n)
}
