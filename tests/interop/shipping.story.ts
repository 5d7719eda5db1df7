/**
 * Logs and events on real sockets at receivers of others: Debian's rsyslog, and the field's own log receiver and event sink. The
 * controllers are those of a node, with the kernel's log of this host where it may be read.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/cosi/clock.ts'
import { silent } from '../../src/cosi/log.ts'
import { Runtime } from '../../src/cosi/runtime.ts'
import { Store } from '../../src/cosi/store.ts'
import * as files from '../../src/linux/fs/files.ts'
import * as socket from '../../src/linux/net/socket.ts'
import * as kmsg from '../../src/linux/system/kmsg.ts'
import * as time from '../../src/linux/system/time.ts'
import { MachineConfig } from '../../src/os/config/resources/machine-config.ts'
import { NetworkStatus } from '../../src/os/network/resources/network-status.ts'
import { Outbound } from '../../src/os/outbound.ts'
import { Events } from '../../src/os/runtime/events.ts'
import { LogFiles } from '../../src/os/runtime/log-files.ts'
import { sendEvents } from '../../src/os/telemetry/controllers/event-delivery.ts'
import { configEventSink } from '../../src/os/telemetry/controllers/event-sink-config.ts'
import { deliverKernelLog } from '../../src/os/telemetry/controllers/kmsg-delivery.ts'
import { configKmsgLog } from '../../src/os/telemetry/controllers/kmsg-log-config.ts'
import { deliverLogs } from '../../src/os/telemetry/controllers/log-delivery.ts'
import { configLogDestinations } from '../../src/os/telemetry/controllers/log-destination.ts'
import { DeliveryStatus } from '../../src/os/telemetry/resources/delivery-status.ts'
import { Deliveries } from '../../src/os/telemetry/shipping/deliveries.ts'
import { Logs } from '../../src/supervise/logs.ts'
import { eventually } from '../cluster/cluster.ts'
import { builtTool } from '../etcd/etcd-tools.ts'
import { FieldReceivers } from './receivers/field-receivers.ts'
import { type Protocol, ports, Rsyslog, rsyslogd } from './receivers/rsyslog.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-shipping-'))
const host = '127.0.0.1'
const story = test.skipIf(!rsyslogd)
const asRoot = test.skipIf(process.getuid?.() !== 0)
if (!rsyslogd) console.log('skipped: needs rsyslogd (apt-get install rsyslog rsyslog-gnutls)')
if (process.getuid?.() !== 0) console.log("skipped: the kernel's log is root's")

const syslog = new Rsyslog(join(folder, 'rsyslog'), host)
const field = new FieldReceivers(host)
/** A receiver that accepts connections and never reads. */
const stalled = Bun.listen({ hostname: host, port: 0, socket: { open: (connection) => void connection.pause(), data() {} } })

const store = new Store()
const runtime = new Runtime(store, { log: silent })
const logs = new Logs()
const logFiles = new LogFiles({ files, log: silent, logs: () => logs.entries() }, folder)
const events = new Events()
const outbound = new Outbound({ publicRoots: '', addedRoots: () => syslog.authority, variables: () => [] })
const deliveries = new Deliveries(systemClock, silent)
const kernel = { kmsg, time, socket }
const dependencies = { kernel, supervisor: { logs }, logFiles, events, outbound, log: silent, clock: systemClock, deliveries }

beforeAll(async () => {
  field.start(await builtTool(folder, 'receivers', 'tests/interop/receivers', '.'))
  if (rsyslogd) syslog.start()
  logFiles.open()
  runtime.register(configLogDestinations, configKmsgLog(''), configEventSink(''))
  runtime.register(deliverLogs(dependencies), deliverKernelLog(dependencies), sendEvents(dependencies))
  runtime.start()
  store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true })
}, 300_000)
afterAll(async () => {
  runtime.stop()
  field.stop()
  await syslog.kill()
  stalled.stop(true)
  rmSync(folder, { recursive: true })
})

const numbered = (word: string, count: number) => Array.from({ length: count }, (_, index) => `${word} ${String(index).padStart(6, '0')}`)
const protocols: readonly Protocol[] = ['tcp', 'udp', 'tls']

/** How many of the lines are not among the messages. */
function missing(lines: readonly string[], messages: readonly Record<string, unknown>[]): number {
  const texts = new Set(messages.map(({ msg }) => msg))
  return lines.filter((line) => !texts.has(line)).length
}

const status = (id: string) => store.get(DeliveryStatus, id)?.spec

function configure(documents: readonly object[]): void {
  store.put(MachineConfig, 'v1alpha1', documents.map((document) => JSON.stringify(document)).join('\n---\n'))
}
const destination = (endpoint: string) => ({ endpoint, format: 'json_lines', extraTags: { site: 'east' } })
const endpoints = [
  ...protocols.map((protocol) => `${protocol}://${host}:${ports[protocol]}`),
  `tcp://${host}:${field.ports.logs}`,
  `tcp://${host}:${stalled.port}`,
  `tcp://${host}:1`,
]
const others = [
  { apiVersion: 'v1alpha1', kind: 'KmsgLogConfig', name: 'field', url: `tcp://${host}:${field.ports.logs}/` },
  { apiVersion: 'v1alpha1', kind: 'EventSinkConfig', endpoint: `${host}:${field.ports.events}` },
]

test("the field's receiver decodes what was logged before it was configured, and what comes then", async () => {
  const early = numbered('early', 100)
  for (const line of early) logs.open('etcd').line(line)
  configure([{ version: 'v1alpha1', machine: { type: 'worker', logging: { destinations: endpoints.map(destination) } } }, ...others])
  await eventually(async () => expect(missing(early, field.logs)).toBe(0))
  const late = numbered('late', 100)
  for (const line of late) logs.open('kubelet').line(line)
  await eventually(async () => expect(missing(late, field.logs)).toBe(0))
  expect(field.logs.find(({ msg }) => msg === early[0])).toMatchObject({ site: 'east', 'talos-level': 'info', 'talos-service': 'etcd' })
}, 120_000)

story(
  'rsyslog has the same lines over TCP, UDP and TLS',
  async () => {
    const lines = numbered('second', 2000)
    for (const line of lines) logs.open('etcd').line(line)
    for (const protocol of protocols) await eventually(async () => expect(missing(lines, syslog.messages(protocol))).toBe(0))
  },
  120_000,
)

test('a line of 100 KiB is cut and marked, and the line after it is whole', async () => {
  logs.open('etcd').line('z'.repeat(100 << 10))
  logs.open('etcd').line('after the long line')
  await eventually(async () => expect(missing(['after the long line'], field.logs)).toBe(0))
  const cut = field.logs.find(({ truncated }) => truncated === true)
  expect(String(cut?.msg).length).toBe(64 << 10)
})

story(
  'a receiver that was killed and returns has every line, of more than memory holds, and costs the others none',
  async () => {
    await syslog.kill()
    const lines = numbered('third'.padEnd(90, '.'), 30_000)
    for (let at = 0; at < lines.length; at += 1500) {
      for (const line of lines.slice(at, at + 1500)) logs.open('etcd').line(line)
      await logFiles.flush()
    }
    await eventually(async () => expect(missing(lines, field.logs)).toBe(0))
    syslog.start()
    for (const protocol of ['tcp', 'tls'] as const) {
      await eventually(async () => expect(missing(lines, syslog.messages(protocol))).toBe(0))
      await eventually(async () =>
        expect(status(`logs/${protocol}://${host}:${ports[protocol]}`)).toMatchObject({ droppedBytes: 0, lastError: '' }),
      )
    }
  },
  180_000,
)

test('the event sink decodes every event, in order and once', async () => {
  for (let number = 0; number < 50; number++)
    events.publish('machine.ServiceStateEvent', { service: `s${number}`, action: number % 9 }, 'actor')
  await eventually(async () => expect(field.events.length).toBe(50))
  expect(field.events.map(({ payload }) => payload.service)).toEqual(Array.from({ length: 50 }, (_, number) => `s${number}`))
  expect(field.events[0]).toMatchObject({ event: 'type.googleapis.com/machine.ServiceStateEvent', actor: 'actor' })
})

test('a line of the kernel among the logs is sent when no other log has one', async () => {
  logFiles.kernel.line('kern: info: [2026-11-24T10:00:00.000Z]: link up')
  await eventually(async () => expect(field.logs.map((line) => line['talos-service'])).toContain('kernel'))
})

asRoot("the kernel's log arrives with its keys", async () => {
  kmsg.writeKernelLog('ichor writes to the log of the kernel')
  const found = () => field.logs.find(({ msg }) => msg === 'ichor writes to the log of the kernel')
  await eventually(async () => expect(found()).toMatchObject({ facility: 'daemon', priority: 'info', 'talos-level': 'info' }))
  for (const key of ['seq', 'clock']) expect(typeof found()?.[key]).toBe('number')
})

test('a receiver that is not there is shown with its error', async () => {
  await eventually(async () =>
    expect(status(`logs/tcp://${host}:1`)).toMatchObject({ connected: false, sent: 0, lastError: expect.stringContaining('connect') }),
  )
  expect(status(`logs/tcp://${host}:${field.ports.logs}`)).toMatchObject({ connected: true, droppedBytes: 0, lastError: '' })
})

test('a configuration without destinations ends the deliveries', async () => {
  configure(others.slice(1))
  await runtime.settled()
  expect(store.list(DeliveryStatus).map(({ metadata }) => metadata.id)).toEqual([`events/${host}:${field.ports.events}`])
})
