/** Traces and metrics on their way to a collector that comes, goes and refuses. */
import { afterEach, describe, expect, test } from 'bun:test'
import { systemClock } from '../../../../src/cosi/clock.ts'
import { createLogger } from '../../../../src/cosi/log.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { Outbound } from '../../../../src/os/outbound.ts'
import type { Metric } from '../../../../src/os/telemetry/metrics/exposition.ts'
import { exportLogs, exportMetrics, exportSpans } from '../../../../src/os/telemetry/otlp/export.ts'
import { senderTo } from '../../../../src/os/telemetry/otlp/sender.ts'
import type { Protocol } from '../../../../src/os/telemetry/resources/otlp-protocols.ts'
import { DeliveryCounts } from '../../../../src/os/telemetry/shipping/delivery-counts.ts'
import { CallSpans } from '../../../../src/os/telemetry/traces/call-spans.ts'
import { SpanQueue } from '../../../../src/os/telemetry/traces/span-queue.ts'
import { unary } from '../../../../src/rpc/server/method.ts'
import { servePlain } from '../../../../src/rpc/server/server.ts'
import { type Answer, collector } from './collector.ts'

const closers: (() => void)[] = []
let stop = new AbortController()
afterEach(() => {
  stop.abort()
  stop = new AbortController()
  for (const close of closers.splice(0)) close()
})

function collecting(...answers: Answer[]) {
  const there = collector(...answers)
  closers.push(there.close)
  return there
}

const outbound = new Outbound({ publicRoots: '', addedRoots: () => '', variables: () => [] })
const about = { resource: { 'service.name': 'machined', zone: 'one' }, scope: { name: 'Ichor', version: 'v1' } }

/** The context of an export, what it counts and what it logs. */
function context(url: string, protocol: Protocol = 'http/protobuf') {
  const messages: string[] = []
  const counts = new DeliveryCounts(url, systemClock)
  const urls = { traces: `${url}/v1/traces`, metrics: `${url}/v1/metrics`, logs: `${url}/v1/logs` }
  const sender = senderTo({ protocol, ...urls, headers: { 'x-key': 'a b' }, timeout: 5000 }, outbound)
  closers.push(() => sender.close())
  return { sender, about, counts, log: createLogger(({ message }) => messages.push(message)), clock: systemClock, firstDelay: 1, messages }
}

const parent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const call = (traceparent?: string) => ({
  method: unary('machine.MachineService/Version', ['os:reader'], () => ({})),
  roles: new Set(['os:admin'] as const),
  metadata: traceparent === undefined ? {} : { traceparent: [traceparent] },
  peer: '10.0.0.9',
})

/** A queue with spans of calls. */
function queued(count = 1, gatherTime = 1) {
  const queue = new SpanQueue(gatherTime)
  const spans = Object.assign(new CallSpans(), { queue })
  spans.use(1)
  for (let index = 0; index < count; index++) spans.ended(call(parent), 'NotFound', 12.5)
  return queue
}

const expected = {
  name: 'machine.MachineService/Version',
  kind: 2,
  status: { code: 2, message: 'NotFound' },
}

describe('a call becomes a span of its caller’s trace', () => {
  test.each(['http/protobuf', 'http/json'] as const)('over %s', async (protocol) => {
    const there = collecting()
    exportSpans(queued(), context(there.url, protocol), stop.signal)
    const [first] = await there.received(1)
    expect(first?.headers.get('x-key')).toBe('a b')
    const [{ resource, scopeSpans }] = first!.message.resourceSpans
    expect(resource.attributes).toContainEqual({ key: 'zone', value: { stringValue: 'one' } })
    expect(scopeSpans[0].scope).toEqual(about.scope)
    const [span] = scopeSpans[0].spans
    expect(span).toMatchObject(expected)
    const hex = (id: string | Uint8Array) => (typeof id === 'string' ? id : Buffer.from(id).toString('hex'))
    expect([hex(span.traceId), hex(span.parentSpanId)]).toEqual(['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'])
    expect(hex(span.spanId)).toMatch(/^[\da-f]{16}$/)
    expect(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)).toBe(12_500_000n)
    expect(span.attributes).toContainEqual({ key: 'client.address', value: { stringValue: '10.0.0.9' } })
  })

  test('over grpc', async () => {
    const { promise, resolve } = Promise.withResolvers<{ name: string; key: string | undefined }>()
    const method = unary('opentelemetry.proto.collector.trace.v1.TraceService/Export', ['os:admin'], ({ resourceSpans }, { metadata }) => {
      const [span] = resourceSpans[0]?.scopeSpans[0]?.spans ?? []
      resolve({ name: span?.name ?? '', key: metadata['x-key']?.[0] })
      return {}
    })
    const server = await servePlain(
      { port: 0, host: '127.0.0.1' },
      { methods: [method], store: new Store(), log: createLogger(() => {}), roles: () => new Set(['os:admin' as const]) },
    )
    closers.push(() => server.close())
    exportSpans(queued(), context(`http://127.0.0.1:${server.port}`, 'grpc'), stop.signal)
    expect(await promise).toEqual({ name: expected.name, key: 'a b' })
  })
})

describe('a collector', () => {
  test('that is busy gets the same spans again, and the failure is logged once', async () => {
    const there = collecting({ status: 503 }, { status: 429, headers: { 'retry-after': '0' } }, {})
    const it = context(there.url)
    const queue = queued()
    exportSpans(queue, it, stop.signal)
    const [first, second, third] = await there.received(3)
    expect(second?.message).toEqual(first?.message)
    expect(third?.message).toEqual(first?.message)
    while (queue.behind > 0) await new Promise(setImmediate)
    expect(it.messages).toEqual(['delivery failed, retrying', 'delivery resumed'])
    expect(it.counts).toMatchObject({ sent: 1, dropped: 0, lastError: '' })
  })

  test('that refuses spans, or some of them, does not get them again, and they count as lost', async () => {
    const partial = { partialSuccess: { rejectedSpans: 2, errorMessage: 'too old' } }
    const there = collecting({ status: 400 }, { body: partial }, {})
    const it = context(there.url)
    const queue = queued(3)
    exportSpans(queue, it, stop.signal)
    await there.received(1)
    for (let index = 0; index < 3; index++)
      queue.add({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), name: 'x', start: 1, end: 2, attributes: {} })
    await there.received(2)
    while (queue.behind > 0) await new Promise(setImmediate)
    expect(it.counts).toMatchObject({ sent: 1, dropped: 5, lastError: 'too old' })
    expect(it.counts.isLosing).toBe(true)
    expect(it.messages).toEqual(['the collector rejects telemetry'])
  })

  test('that is replaced leaves what it does not have to the next', async () => {
    const queue = queued(2)
    const first = new AbortController()
    const gone = exportSpans(queue, context('http://127.0.0.1:1'), first.signal)
    first.abort()
    await gone
    expect(queue.behind).toBe(2)
    const there = collecting()
    exportSpans(queue, context(there.url), stop.signal)
    const [got] = await there.received(1)
    expect(got?.message.resourceSpans[0].scopeSpans[0].spans).toHaveLength(2)
  })
})

test('spans wait for others, but not when the machine stops, and the oldest give way', async () => {
  const there = collecting()
  const queue = queued(2100, 3_600_000)
  expect(queue.behind).toBe(2048)
  exportSpans(queue, context(there.url), stop.signal)
  await there.received(4)
  queue.add({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), name: 'last', start: 1, end: 2, attributes: {} })
  queue.flush()
  const got = await there.received(5)
  expect(got[4]?.message.resourceSpans[0].scopeSpans[0].spans[0].name).toBe('last')
})

test('calls of untraced callers are not traced, and none without a ratio', () => {
  const spans = new CallSpans()
  spans.ended(call(parent), 'OK', 1)
  spans.use(0)
  spans.ended(call(), 'OK', 1)
  spans.ended(call(parent.replace(/01$/, '00')), 'OK', 1)
  expect(spans.queue.behind).toBe(0)
  spans.ended(call(parent), 'OK', 1)
  expect(spans.queue.behind).toBe(1)
})

const metrics: Metric[] = [
  { name: 'node_load1', help: 'Load.', type: 'gauge', samples: [[{}, 0.25]] },
  {
    name: 'ichor_calls_total',
    help: 'Calls.',
    type: 'counter',
    samples: [
      [{ method: 'a' }, 3],
      [{ method: 'b' }, 4],
    ],
  },
  {
    name: 'ichor_call_seconds',
    help: 'Durations.',
    type: 'histogram',
    samples: [
      [{ method: 'a', le: 0.1 }, 1, '_bucket'],
      [{ method: 'a', le: 1 }, 3, '_bucket'],
      [{ method: 'a', le: '+Inf' }, 4, '_bucket'],
      [{ method: 'a' }, 5.5, '_sum'],
      [{ method: 'a' }, 4, '_count'],
    ],
  },
  { name: 'nothing', help: 'No samples.', type: 'gauge', samples: [] },
]

test('lines of logs are sent as records, and again until the collector has them', async () => {
  const there = collecting({ status: 503 }, {})
  const it = context(there.url, 'http/json')
  const message = (msg: string, fields: object) =>
    JSON.stringify({ msg, 'talos-time': '2026-01-02T03:04:05.678Z', 'talos-service': 'etcd', ...fields })
  const texts = [
    message('elected', { 'talos-level': 'warn', term: 7, peers: ['a'] }),
    message('fine', { 'talos-level': 'info', 'talos-service': 'kubelet' }),
  ]
  let delivered = 0
  const feed = {
    behind: 0,
    positions: {},
    async *batches() {
      if (delivered === 0) yield { texts, delivered: () => void delivered++ }
    },
  }
  exportLogs(feed, it, stop.signal)
  const got = await there.received(2)
  expect(got[1]?.message.resourceLogs).toHaveLength(2)
  const [{ resource, scopeLogs }] = got[1]!.message.resourceLogs
  expect(resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'etcd' } })
  expect(scopeLogs[0].logRecords[0]).toMatchObject({
    timeUnixNano: '1767323045678000000',
    severityNumber: 13,
    severityText: 'warn',
    body: { stringValue: 'elected' },
    attributes: [
      { key: 'term', value: { intValue: 7 } },
      { key: 'peers', value: { stringValue: '["a"]' } },
    ],
  })
  while (delivered === 0) await new Promise(setImmediate)
  expect(it.counts).toMatchObject({ sent: 2, dropped: 0 })
})

test('metrics are read and sent at intervals, as gauges, cumulative sums and histograms', async () => {
  const there = collecting({ status: 502 }, {})
  const it = context(there.url)
  exportMetrics(() => metrics, 1, it, stop.signal)
  const got = await there.received(3)
  const [{ scopeMetrics }] = got[1]!.message.resourceMetrics
  const [load, calls, seconds, ...others] = scopeMetrics[0].metrics
  expect(others).toEqual([])
  expect(load).toMatchObject({ name: 'node_load1', description: 'Load.', gauge: { dataPoints: [{ asDouble: 0.25 }] } })
  expect(calls.sum).toMatchObject({ aggregationTemporality: 2, isMonotonic: true })
  expect(calls.sum.dataPoints[1]).toMatchObject({ asDouble: 4, attributes: [{ key: 'method', value: { stringValue: 'b' } }] })
  const [point] = seconds.histogram.dataPoints
  expect(point).toMatchObject({ count: '4', sum: 5.5, explicitBounds: [0.1, 1], bucketCounts: ['1', '2', '1'] })
  expect(BigInt(point.timeUnixNano)).toBeGreaterThanOrEqual(BigInt(point.startTimeUnixNano))
  expect(it.counts).toMatchObject({ sent: 4, dropped: 0 })
})
