/**
 * Traces, metrics and logs at the OpenTelemetry collector's own receiver, in each form that it takes. The controller is that of a node, the
 * metrics are those of this machine.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as files from '../../src/linux/fs/files.ts'
import { MachineConfig } from '../../src/os/config/resources/machine-config.ts'
import { HostnameStatus } from '../../src/os/network/resources/hostname.ts'
import { NetworkStatus } from '../../src/os/network/resources/network-status.ts'
import { Outbound } from '../../src/os/outbound.ts'
import { Events } from '../../src/os/runtime/events.ts'
import { LogFiles } from '../../src/os/runtime/log-files.ts'
import { configCollector, exportTelemetry } from '../../src/os/telemetry/controllers/telemetry-export.ts'
import { DeliveryStatus } from '../../src/os/telemetry/resources/delivery-status.ts'
import { protocols } from '../../src/os/telemetry/resources/otlp-protocols.ts'
import { Deliveries } from '../../src/os/telemetry/shipping/deliveries.ts'
import { unary } from '../../src/rpc/server/method.ts'
import { Logs } from '../../src/supervise/logs.ts'
import { builtTool } from '../etcd/etcd-tools.ts'
import { fill, machine } from '../os/telemetry/metrics/machine.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-telemetry-'))
const host = '127.0.0.1'
const ports = { grpc: 5145, http: 5146 } as const
const node = await machine()
const logs = new Logs()
const logFiles = new LogFiles({ files, log: node.log, logs: () => logs.entries() }, folder)
const deliveries = new Deliveries(node.clock, node.log)
const outbound = new Outbound({ publicRoots: '', addedRoots: () => '', variables: () => [] })

/** What the receiver decoded, and who waits for more. */
const received: { signal: string; content: any }[] = []
let came = () => {}
let receiver: Bun.Subprocess<'ignore', 'pipe', 'inherit'> | undefined

async function listen(output: AsyncIterable<Uint8Array>): Promise<void> {
  let rest = ''
  for await (const bytes of output) {
    const lines = `${rest}${Buffer.from(bytes)}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [signal = '', content = 'null'] = [line.split(' ', 1)[0], line.slice(line.indexOf(' ') + 1)]
      received.push({ signal, content: signal === 'ready' ? undefined : JSON.parse(content) })
    }
    came()
  }
}

/** The first message of a signal for which something holds. */
async function got(signal: string, holds: (content: any) => boolean = () => true): Promise<any> {
  for (;;) {
    const found = received.find((each) => each.signal === signal && holds(each.content))
    if (found) return found.content
    await new Promise<void>((resolve) => (came = resolve))
  }
}

beforeAll(async () => {
  const program = await builtTool(folder, 'otlp', 'tests/interop/otlp', '.')
  receiver = Bun.spawn([program, `${host}:${ports.grpc}`, `${host}:${ports.http}`], { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
  listen(receiver.stdout).catch(() => {}) // it was stopped
  await got('ready')
  logFiles.open()
  fill(node.store)
  node.store.put(HostnameStatus, 'hostname', { hostname: 'node-1', domainname: '' })
  node.store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true })
  node.runtime.register(
    configCollector,
    exportTelemetry({
      ...node,
      supervisor: Object.assign(node.supervisor, { logs }),
      logFiles,
      outbound,
      deliveries,
      events: new Events(),
    }),
  )
}, 600_000)
afterAll(() => {
  node.runtime.stop()
  receiver?.kill()
  rmSync(folder, { recursive: true })
})

const attribute = (attributes: readonly { key: string; value: Record<string, unknown> }[], name: string) =>
  Object.values(attributes.find(({ key }) => key === name)?.value ?? {})[0]

test.each(protocols)('over %s the receiver decodes spans of calls, all metrics and lines of logs', async (protocol) => {
  const port = protocol === 'grpc' ? ports.grpc : ports.http
  const endpoint = `http://${host}:${port}`
  const attributes = { 'deployment.environment.name': protocol }
  const otlp = { endpoint, protocol, attributes, traces: {}, metrics: { interval: '5s' }, logs: {} }
  const ours = ({ resource }: { resource: { attributes: [] } }) =>
    attribute(resource.attributes, 'deployment.environment.name') === protocol
  node.store.put(MachineConfig, 'v1alpha1', JSON.stringify({ apiVersion: 'v1alpha1', kind: 'TelemetryConfig', otlp }))
  await node.runtime.settled()
  const call = {
    method: unary('machine.MachineService/Version', ['os:reader'], () => ({})),
    roles: new Set(['os:admin'] as const),
    peer: host,
  }
  node.calls.ended({ ...call, metadata: { traceparent: ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'] } }, 'NotFound', 12.5)
  logs.open('etcd').line('{"level":"warn","ts":"2026-01-02T03:04:05.678Z","msg":"elected","term":7}')
  await deliveries.drain()

  const [{ resource, scopeSpans }] = (await got('traces', ({ resourceSpans }) => resourceSpans.some(ours))).resourceSpans
  expect(attribute(resource.attributes, 'host.name')).toBe('node-1')
  expect(scopeSpans[0].spans[0]).toMatchObject({
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    parentSpanId: '00f067aa0ba902b7',
    name: 'machine.MachineService/Version',
    kind: 2,
    status: { code: 2, message: 'NotFound' },
  })

  const [{ scopeLogs }] = (await got('logs', ({ resourceLogs }) => resourceLogs.some(ours))).resourceLogs
  expect(scopeLogs[0].logRecords.at(-1)).toMatchObject({
    severityText: 'warn',
    severityNumber: 13,
    timeUnixNano: '1767323045678000000',
    body: { stringValue: 'elected' },
    attributes: [{ key: 'term', value: { intValue: '7' } }],
  })

  const [{ scopeMetrics }] = (await got('metrics', ({ resourceMetrics }) => resourceMetrics.some(ours))).resourceMetrics
  const byName = new Map<string, any>(scopeMetrics[0].metrics.map((metric: { name: string }) => [metric.name, metric]))
  expect(byName.get('node_memory_MemTotal_bytes').gauge.dataPoints[0].asDouble).toBeGreaterThan(1e8)
  expect(byName.get('node_cpu_seconds_total').sum).toMatchObject({ aggregationTemporality: 2, isMonotonic: true })
  expect(byName.get('ichor_build_info').gauge.dataPoints[0].attributes).toContainEqual({
    key: 'version',
    value: { stringValue: 'v1.13.0' },
  })
  expect(node.store.get(DeliveryStatus, `traces/${endpoint}/v1/traces`)?.spec.lastError).toBe('')
})
