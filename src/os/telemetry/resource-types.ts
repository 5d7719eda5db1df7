import { APICall } from './resources/api-call.ts'
import { CPUStat } from './resources/cpu-stat.ts'
import { DeliveryStatus } from './resources/delivery-status.ts'
import { EventSinkConfig } from './resources/event-sink-config.ts'
import { KmsgLogConfig } from './resources/kmsg-log-config.ts'
import { LogDestination } from './resources/log-destination.ts'
import { MemoryStat } from './resources/memory-stat.ts'
import { MetricsEndpoint } from './resources/metrics-endpoint.ts'
import { TelemetryCollector } from './resources/telemetry-collector.ts'

/** The kinds of resources of this area. */
export const resources = [
  APICall,
  CPUStat,
  DeliveryStatus,
  EventSinkConfig,
  KmsgLogConfig,
  LogDestination,
  MemoryStat,
  MetricsEndpoint,
  TelemetryCollector,
]
