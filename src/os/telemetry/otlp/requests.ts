/** Spans and metrics in the messages of OTLP. */
import { opentelemetry } from '../../../rpc/enums.ts'
import type { opentelemetry as messages } from '../../../rpc/messages.ts'
import type { Init } from '../../../rpc/server/method.ts'
import type { Metric, Sample } from '../metrics/exposition.ts'
import type { Span } from '../traces/span.ts'
import { attributesOf, nanoseconds } from './attributes.ts'
import type { ExportRequest } from './sender.ts'

/** What is sent is about this machine, and comes from this software. */
export interface About {
  readonly resource: Readonly<Record<string, string>>
  readonly scope: { readonly name: string; readonly version: string }
}

const { SPAN_KIND_SERVER, SPAN_KIND_INTERNAL } = opentelemetry.proto.trace.v1.Span.SpanKind
const { STATUS_CODE_UNSET, STATUS_CODE_ERROR } = opentelemetry.proto.trace.v1.Status.StatusCode
const { AGGREGATION_TEMPORALITY_CUMULATIVE } = opentelemetry.proto.metrics.v1.AggregationTemporality

/** The request with these spans. */
export const tracesRequest = (spans: readonly Span[], { resource, scope }: About): ExportRequest<'traces'> => ({
  resourceSpans: [{ resource: { attributes: attributesOf(resource) }, scopeSpans: [{ scope, spans: spans.map(spanOf) }] }],
})

function spanOf({ traceId, spanId, parentSpanId, name, kind, start, end, attributes, failure }: Span): Init<messages.proto.trace.v1.Span> {
  return {
    traceId: bytesOf(traceId),
    spanId: bytesOf(spanId),
    ...(parentSpanId && { parentSpanId: bytesOf(parentSpanId) }),
    name,
    kind: kind === 'internal' ? SPAN_KIND_INTERNAL : SPAN_KIND_SERVER,
    startTimeUnixNano: nanoseconds(start),
    endTimeUnixNano: nanoseconds(end),
    attributes: attributesOf(attributes),
    status: failure === undefined ? { code: STATUS_CODE_UNSET } : { code: STATUS_CODE_ERROR, message: failure },
  }
}

/** No Buffer: JSON.stringify would turn one into an object before it can be shown as text. */
const bytesOf = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'))

/** The time of a reading, and since when its counters count, in milliseconds since 1970. */
interface Reading extends About {
  readonly since: number
  readonly now: number
}

/** The request with these metrics, and how many points it has. */
export function metricsRequest(metrics: readonly Metric[], reading: Reading): { request: ExportRequest<'metrics'>; points: number } {
  const all = metrics.filter(({ samples }) => samples.length > 0).map((metric) => metricOf(metric, reading))
  const resource = { attributes: attributesOf(reading.resource) }
  return {
    request: { resourceMetrics: [{ resource, scopeMetrics: [{ scope: reading.scope, metrics: all }] }] },
    points: all.reduce((sum, { gauge, sum: counter, histogram }) => sum + ((gauge ?? counter ?? histogram)?.dataPoints?.length ?? 0), 0),
  }
}

type MetricMessage = Init<messages.proto.metrics.v1.Metric>

function metricOf({ name, help, type, samples }: Metric, { since, now }: Reading): MetricMessage {
  const head = { name, description: help }
  const times = { startTimeUnixNano: nanoseconds(since), timeUnixNano: nanoseconds(now) }
  const aggregationTemporality = AGGREGATION_TEMPORALITY_CUMULATIVE
  if (type === 'histogram') return { ...head, histogram: { aggregationTemporality, dataPoints: histogramPoints(samples, times) } }
  const points = (time: object) => samples.map(([labels, asDouble]) => ({ ...time, asDouble, attributes: attributesOf(labels) }))
  if (type === 'counter') return { ...head, sum: { aggregationTemporality, isMonotonic: true, dataPoints: points(times) } }
  return { ...head, gauge: { dataPoints: points({ timeUnixNano: times.timeUnixNano }) } }
}

/** Samples of one histogram with the same labels are one point; Prometheus' buckets contain those below them, OTLP's do not. */
function histogramPoints(samples: readonly Sample[], times: object): Init<messages.proto.metrics.v1.HistogramDataPoint>[] {
  const groups = new Map<string, { labels: Sample[0]; buckets: [bound: number, count: number][]; sum: number; count: number }>()
  for (const [{ le, ...labels }, value, suffix] of samples) {
    const key = JSON.stringify(labels)
    const group = groups.get(key) ?? { labels, buckets: [], sum: 0, count: 0 }
    groups.set(key, group)
    if (suffix === '_sum') group.sum = value
    else if (suffix === '_count') group.count = value
    else if (le !== undefined && le !== '+Inf') group.buckets.push([Number(le), value])
  }
  return [...groups.values()].map(({ labels, buckets, sum, count }) => {
    const sorted = buckets.toSorted(([a], [b]) => a - b)
    const upTo = [...sorted.map(([, value]) => value), count]
    return {
      ...times,
      attributes: attributesOf(labels),
      count,
      sum,
      explicitBounds: sorted.map(([bound]) => bound),
      bucketCounts: upTo.map((value, index) => value - (upTo[index - 1] ?? 0)),
    }
  })
}
