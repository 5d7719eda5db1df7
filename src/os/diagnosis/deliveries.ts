/** Receivers of logs and events that take nothing, or that lack something. */
import type { Store } from '../../cosi/store.ts'
import { DeliveryStatus } from '../telemetry/resources/delivery-status.ts'
import type { Finding } from './findings.ts'

const names = {
  logs: 'log destination',
  kernel: 'kernel log destination',
  events: 'event sink',
  traces: 'collector of traces',
  metrics: 'collector of metrics',
  'log-records': 'collector of logs',
} as const
const keys = {
  logs: 'machine.logging.destinations',
  kernel: 'KmsgLogConfig',
  events: 'EventSinkConfig',
  traces: 'TelemetryConfig',
  metrics: 'TelemetryConfig',
  'log-records': 'TelemetryConfig',
} as const

/** Destinations that are not reached, and those that lost something in the last hour. */
export function troubledDeliveries(store: Store): Finding[] {
  return store
    .list(DeliveryStatus)
    .filter(({ spec: { connected, lastError, losing } }) => losing || (!connected && lastError !== ''))
    .map(({ metadata: { id }, spec: { source, destination, connected, lastError, losing, dropped, droppedBytes, behind } }) => {
      const ofBytes = source === 'logs' || source === 'log-records'
      const unit = ofBytes ? 'bytes' : 'records'
      const lost = losing ? [`${ofBytes ? droppedBytes : dropped} ${unit} were lost before they could be sent`] : []
      const silent = connected
        ? []
        : [`it takes nothing, and ${behind} ${unit} wait: check the receiver, the route to it, and ${keys[source]}`]
      return {
        kind: connected ? 'unhealthy' : 'outside',
        about: { kind: 'resource', type: DeliveryStatus.type, id },
        subject: `${names[source]} ${destination}`,
        sentence: [...silent, ...lost].join('; '),
        ...(lastError !== '' && { error: lastError }),
      }
    })
}
