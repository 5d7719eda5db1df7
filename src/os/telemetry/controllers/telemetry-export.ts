import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { HostnameStatus } from '../../network/resources/hostname.ts'
import { NetworkStatus } from '../../network/resources/network-status.ts'
import { Environment } from '../../runtime/resources/environment.ts'
import { TelemetryConfig } from '../documents/telemetry.ts'
import { collect, type Sources } from '../metrics/collect.ts'
import { type ExportContext, exportLogs, exportMetrics, exportSpans } from '../otlp/export.ts'
import { senderTo } from '../otlp/sender.ts'
import { settingsOf, traceSettings } from '../otlp/settings.ts'
import { DeliveryStatus } from '../resources/delivery-status.ts'
import { TelemetryCollector } from '../resources/telemetry-collector.ts'
import type { DeliveryCounts } from '../shipping/delivery-counts.ts'
import { Destinations, reportInterval } from '../shipping/destinations.ts'
import { dropReporter } from '../shipping/drop-reporter.ts'
import type { Dropped } from '../shipping/feed.ts'
import { LogFeed } from '../shipping/log-feed.ts'
import { type NodeLogs, nodeLogs } from '../shipping/node-logs.ts'
import { SequenceSpans } from '../traces/sequence-spans.ts'
import { randomId, type Span } from '../traces/span.ts'

/** Milliseconds from which on a round of a controller is worth a span. */
const slowRound = 1000

/** The collector of the configuration, else that of the environment. */
export const configCollector: Controller = defineController({
  name: 'runtime.TelemetryCollectorConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), environment: weak(Environment, { id: 'machined' }) },
  outputs: { collector: exclusive(TelemetryCollector) },
  reconcile({ config, environment, collector }) {
    const document = find(declared(config.get('v1alpha1')), TelemetryConfig)
    const own = document && settingsOf(document)
    const { settings, problem } = own ? { settings: own } : traceSettings(environment.get('machined')?.spec.variables ?? [])
    if (problem) throw new Error(problem)
    if (settings) collector.put('collector', settings)
  },
})

/** Exports traces of the machine API's calls, metrics and logs. */
export const exportTelemetry = (machine: Sources & NodeLogs & Pick<Machine, 'outbound' | 'deliveries' | 'events'>): Controller => {
  const { calls, version, log, outbound, clock, deliveries, events, runtime } = machine
  const { queue } = calls.spans
  const sequences = new SequenceSpans(queue)
  let traced = false
  runtime.onRound((controller, took) => {
    if (traced && took >= slowRound) queue.add(slowSpan(controller, took, clock.now().getTime()))
  })
  const traces = new Destinations('traces', clock, (counts) => {
    const drop = dropReporter(counts, log, clock)
    queue.onDrop = (count) => drop('traces', count, 'records')
    return queue
  })
  // A reading is the present: nothing waits.
  const readings = new Destinations('metrics', clock, () => ({ behind: 0, positions: {} }))
  let services: readonly string[] = []
  const logs = new Destinations('log-records', clock, (counts) => feedOf(machine, dropReporter(counts, log, clock), () => services))
  deliveries.add(logs)
  deliveries.add({ waiting: () => traces.waiting(), flush: () => queue.flush() })
  return defineController({
    name: 'runtime.TelemetryExportController',
    inputs: {
      collectors: weak(TelemetryCollector, { id: 'collector' }),
      hostname: weak(HostnameStatus, { id: 'hostname' }),
      network: weak(NetworkStatus, { id: 'status' }),
    },
    outputs: { statuses: shared(DeliveryStatus) },
    reconcile({ collectors, hostname, network, statuses, background, wakeIn }) {
      const collector = collectors.get('collector')?.spec
      traced = Boolean(collector?.traces)
      calls.spans.use(collector?.traces ? collector.ratio : undefined)
      traces.retain(new Set(collector?.traces ? [collector.traces] : []))
      readings.retain(new Set(collector?.metrics ? [collector.metrics] : []))
      logs.retain(new Set(collector?.logs ? [collector.logs] : []))
      services = collector?.services ?? []
      if (!collector || !network.get('status')?.spec.addressReady) return
      const name = hostname.get('hostname')?.spec.hostname
      const resource = { 'service.version': version.tag, ...(name && { 'host.name': name }), ...collector.attributes }
      // The settings have secrets, so tasks are named by their digest.
      const key = new Bun.CryptoHasher('sha256').update(JSON.stringify([collector, resource])).digest('hex')
      const running = async (counts: DeliveryCounts, run: (context: ExportContext) => Promise<void>) => {
        const sender = senderTo(collector, outbound)
        const about = { resource, scope: { name: version.name, version: version.tag } }
        await run({ sender, about, counts, log, clock }).finally(() => sender.close())
      }
      if (collector.traces) {
        const destination = traces.get(collector.traces)
        background(`traces ${key}`, (signal) => running(destination.counts, (context) => exportSpans(queue, context, signal)))
        background('sequences', (signal) => sequences.follow(events, signal))
        statuses.put(`traces/${collector.traces}`, traces.status(destination))
      }
      if (collector.metrics) {
        const destination = readings.get(collector.metrics)
        const read = () => collect(machine)
        background(`metrics ${key}`, (signal) =>
          running(destination.counts, (context) => exportMetrics(read, collector.interval, context, signal)),
        )
        statuses.put(`metrics/${collector.metrics}`, readings.status(destination))
      }
      if (collector.logs) {
        const destination = logs.get(collector.logs)
        background(`logs ${key}`, (signal) => running(destination.counts, (context) => exportLogs(destination.reader, context, signal)))
        statuses.put(`log-records/${collector.logs}`, logs.status(destination))
      }
      wakeIn(reportInterval)
    },
  })
}

function slowSpan(controller: string, took: number, end: number): Span {
  const ids = { traceId: randomId(16), spanId: randomId(8) }
  return { ...ids, name: `controller ${controller}`, kind: 'internal', start: end - took, end, attributes: { controller } }
}

/** The logs of some services; of all when none is named. */
function feedOf(machine: NodeLogs, dropped: Dropped, services: () => readonly string[]): LogFeed {
  const sources = nodeLogs(machine)
  const isSent = (name: string) => services().length === 0 || services().includes(name)
  return new LogFeed({ ...sources, logs: () => [...sources.logs()].filter(([name]) => isSent(name)), tags: () => ({}), dropped })
}
