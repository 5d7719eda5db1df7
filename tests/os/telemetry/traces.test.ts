import { expect, test } from 'bun:test'
import { createLogger, silent } from '../../../src/cosi/log.ts'
import { CallSpans } from '../../../src/os/telemetry/traces/call-spans.ts'
import { TraceExporter } from '../../../src/os/telemetry/traces/exporter.ts'
import { traceSettings } from '../../../src/os/telemetry/traces/settings.ts'
import { parseTraceParent } from '../../../src/os/telemetry/traces/span.ts'
import { unary } from '../../../src/rpc/server/method.ts'

const scope = { name: 'Ichor', version: 'v1' }
const call = (metadata: Record<string, string[]> = {}) => ({
  method: unary('machine.MachineService/Version', ['os:reader'], () => ({})),
  roles: new Set(['os:admin'] as const),
  metadata,
  peer: '10.0.0.9',
})

/** A collector that answers with these statuses in turn, the last for ever. */
function collector(...answers: number[]) {
  const bodies: { headers: Headers; body: any }[] = []
  const waiting: (() => void)[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      bodies.push({ headers: request.headers, body: await request.json() })
      for (const wake of waiting.splice(0)) wake()
      return new Response('{}', { status: (answers.length > 1 ? answers.shift() : answers[0]) ?? 200 })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/v1/traces`,
    bodies,
    close: () => server.stop(true),
    async got(count: number) {
      while (bodies.length < count) await new Promise<void>((resolve) => waiting.push(resolve))
      return bodies
    },
  }
}

const settings = (url: string) =>
  traceSettings([
    `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=${url}`,
    'OTEL_EXPORTER_OTLP_HEADERS=x-key=a%20b',
    'OTEL_RESOURCE_ATTRIBUTES=zone=one',
  ]).settings!

test('a call becomes a span of its caller’s trace', async () => {
  const there = collector(200)
  const spans = new CallSpans()
  spans.use(new TraceExporter(settings(there.url), { outbound: { fetch }, log: silent, scope, every: 1 }))
  spans.ended(call({ traceparent: ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'] }), 'NotFound', 12.5)
  const [first] = await there.got(1)
  expect(first?.headers.get('x-key')).toBe('a b')
  expect(first?.headers.get('content-type')).toBe('application/json')
  const [{ resource, scopeSpans }] = first!.body.resourceSpans
  expect(resource.attributes).toContainEqual({ key: 'zone', value: { stringValue: 'one' } })
  expect(resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'machined' } })
  const [span] = scopeSpans[0].spans
  expect(span).toMatchObject({
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    parentSpanId: '00f067aa0ba902b7',
    spanId: expect.stringMatching(/^[\da-f]{16}$/),
    name: 'machine.MachineService/Version',
    kind: 2,
    status: { code: 2, message: 'NotFound' },
  })
  expect(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)).toBe(12_500_000n)
  expect(span.attributes).toContainEqual({ key: 'client.address', value: { stringValue: '10.0.0.9' } })
  spans.use(undefined)
  there.close()
})

test('spans that a collector refuses are sent again, and the failure is logged once', async () => {
  const there = collector(503, 429, 200)
  const messages: string[] = []
  const log = createLogger(({ message }) => messages.push(message))
  const exporter = new TraceExporter(settings(there.url), { outbound: { fetch }, log, scope, every: 1, firstDelay: 1 })
  const spans = new CallSpans()
  spans.use(exporter)
  spans.ended(call(), 'OK', 1)
  const [first, second, third] = await there.got(3)
  expect(second?.body).toEqual(first?.body)
  expect(third?.body).toEqual(first?.body)
  expect(messages[0]).toBe('trace export failed, retrying')
  spans.use(undefined)
  there.close()
})

test('calls of untraced callers are not traced, and nothing is sent unless the operator enables it', () => {
  const spans = new CallSpans()
  const added: unknown[] = []
  const exporter = new TraceExporter({ ...settings('http://127.0.0.1:1/'), ratio: 0 }, { outbound: { fetch }, log: silent, scope })
  exporter.add = (span) => void added.push(span)
  spans.use(exporter)
  spans.ended(call(), 'OK', 1)
  spans.ended(call({ traceparent: ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00'] }), 'OK', 1)
  expect(added).toEqual([])
  expect(traceSettings([])).toEqual({})
  expect(traceSettings(['OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/', 'OTEL_SDK_DISABLED=true'])).toEqual({})
})

test('settings are those of the variables, and a wrong one is named', () => {
  const of = (...variables: string[]) => traceSettings(['OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/', ...variables])
  expect(of().settings).toMatchObject({ url: 'http://c:4318/v1/traces', ratio: 1, timeout: 10_000 })
  expect(of('OTEL_TRACES_SAMPLER=traceidratio', 'OTEL_TRACES_SAMPLER_ARG=0.25').settings?.ratio).toBe(0.25)
  expect(of('OTEL_SERVICE_NAME=node').settings?.resource['service.name']).toBe('node')
  expect(of('OTEL_TRACES_SAMPLER=nothing').problem).toContain('OTEL_TRACES_SAMPLER "nothing"')
  expect(of('OTEL_EXPORTER_OTLP_PROTOCOL=grpc').problem).toContain('http/json')
  expect(traceSettings(['OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318']).problem).toContain('no HTTP address')
})

test.each([
  '',
  '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
  'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  '00-x-y-01',
])('no parent: "%s"', (header) => expect(parseTraceParent(header)).toBeUndefined())
