import type { Area } from '../area.ts'
import { metrics } from './api/metrics.ts'
import { observeCalls } from './controllers/api-call.ts'
import { sendEvents } from './controllers/event-delivery.ts'
import { configEventSink } from './controllers/event-sink-config.ts'
import { deliverKernelLog } from './controllers/kmsg-delivery.ts'
import { configKmsgLog } from './controllers/kmsg-log-config.ts'
import { deliverLogs } from './controllers/log-delivery.ts'
import { configLogDestinations } from './controllers/log-destination.ts'
import { configMetricsEndpoint, startMetrics } from './controllers/metrics-endpoint.ts'
import { observeStats } from './controllers/stats.ts'
import { configCollector, exportTelemetry } from './controllers/telemetry-export.ts'
import { resources } from './resource-types.ts'
import { metricsdService } from './services/metricsd.ts'

/** Audit log, metrics and traces of the machine and of its API's calls; delivery of logs and events. */
export const telemetry: Area = {
  name: 'telemetry',
  resources,
  parts: (machine) => {
    const commandLine = machine.kernel.mode === 'container' ? '' : machine.kernel.files.readText('/proc/cmdline')
    return {
      controllers: [
        observeCalls(machine.calls.audit),
        observeStats(machine.kernel),
        configCollector,
        exportTelemetry(machine),
        configLogDestinations,
        configKmsgLog(commandLine),
        configEventSink(commandLine),
        deliverLogs(machine),
        // In a container it would be the host's.
        ...(machine.kernel.mode === 'container' ? [] : [deliverKernelLog(machine)]),
        sendEvents(machine),
        configMetricsEndpoint,
        startMetrics(machine),
      ],
      services: [metricsdService(machine)],
      methods: [metrics(machine)],
    }
  },
}
