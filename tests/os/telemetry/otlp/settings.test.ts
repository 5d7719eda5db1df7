import { describe, expect, test } from 'bun:test'
import { TelemetryConfig } from '../../../../src/os/telemetry/documents/telemetry.ts'
import { settingsOf, traceSettings } from '../../../../src/os/telemetry/otlp/settings.ts'
import { parseTraceParent } from '../../../../src/os/telemetry/traces/span.ts'

describe('the settings of variables', () => {
  const of = (...variables: string[]) => traceSettings(['OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/', ...variables])

  test('are those of OpenTelemetry, and a wrong one is named', () => {
    expect(of().settings).toMatchObject({ traces: 'http://c:4318/v1/traces', metrics: '', timeout: 10_000, ratio: 1 })
    expect(of('OTEL_TRACES_SAMPLER=traceidratio', 'OTEL_TRACES_SAMPLER_ARG=0.25').settings?.ratio).toBe(0.25)
    expect(of('OTEL_SERVICE_NAME=node').settings?.attributes['service.name']).toBe('node')
    expect(of('OTEL_EXPORTER_OTLP_HEADERS=x-key=a%20b').settings?.headers).toEqual({ 'x-key': 'a b' })
    expect(of('OTEL_EXPORTER_OTLP_PROTOCOL=grpc').settings?.protocol).toBe('grpc')
    expect(of('OTEL_TRACES_SAMPLER=nothing').problem).toContain('OTEL_TRACES_SAMPLER "nothing"')
    expect(of('OTEL_EXPORTER_OTLP_PROTOCOL=zipkin').problem).toContain('use grpc, http/protobuf, http/json')
    expect(traceSettings(['OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318']).problem).toContain('no HTTP address')
  })

  test('are none where nothing names a collector, or tracing is off', () => {
    expect(traceSettings([])).toEqual({})
    expect(of('OTEL_SDK_DISABLED=true')).toEqual({})
  })
})

type Declared = Parameters<typeof settingsOf>[0]
const endpoint = 'https://collector:4318'

test('the settings of a document', () => {
  expect(settingsOf({} as Declared)).toBeUndefined()
  const whole = {
    endpoint: `${endpoint}/`,
    headers: { authorization: 'Bearer x' },
    traces: { ratio: 0.5 },
    metrics: { interval: '30s' },
    logs: { services: ['etcd'] },
  }
  expect(settingsOf({ otlp: whole } as Declared)).toEqual({
    protocol: 'http/protobuf',
    traces: `${endpoint}/v1/traces`,
    metrics: `${endpoint}/v1/metrics`,
    logs: `${endpoint}/v1/logs`,
    services: ['etcd'],
    headers: { authorization: 'Bearer x' },
    timeout: 10_000,
    attributes: { 'service.name': 'machined' },
    ratio: 0.5,
    interval: 30_000,
  })
})

test.each([
  [{}, 'the URL of a collector is required'],
  [{ endpoint }, 'nothing would be sent'],
  [{ endpoint: 'https://user@collector', traces: {} }, 'put credentials into headers'],
  [{ endpoint, traces: {}, headers: { 'x-key': 'a\nb' } }, 'a value of one line of ASCII'],
  [{ endpoint, metrics: { interval: '1s' } }, 'give "5s" or longer'],
  [{ endpoint, metrics: {}, timeout: '2m' }, 'at most 60 seconds'],
])('a document with %j is refused', (otlp, why) => {
  const errors: string[] = []
  TelemetryConfig.rules?.({ otlp } as Declared, { error: (_, text) => errors.push(text), warning: () => {} }, 'metal')
  expect(errors.join()).toContain(why)
})

test.each([
  '',
  '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
  'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  '00-x-y-01',
])('no parent: "%s"', (header) => expect(parseTraceParent(header)).toBeUndefined())
