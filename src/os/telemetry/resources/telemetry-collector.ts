import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { protocols } from './otlp-protocols.ts'

/** The collector that telemetry is sent to. */
export const TelemetryCollector = defineResource({
  type: 'TelemetryCollectors.runtime.ichor.dev',
  namespace: 'runtime',
  displayType: 'TelemetryCollector',
  aliases: ['collector', 'collectors'],
  initials: false,
  sensitive: true,
  columns: { Protocol: '{.protocol}', Traces: '{.traces}', Metrics: '{.metrics}', Logs: '{.logs}' },
  spec: v.object({
    protocol: v.picklist(protocols),
    /** Where traces go; empty when none are sent. */
    traces: v.string(),
    /** The share of the traces that start here, 0 to 1. */
    ratio: v.number(),
    /** Where metrics go; empty when none are sent. */
    metrics: v.string(),
    /** Milliseconds between two readings of the metrics. */
    interval: v.number(),
    /** Where logs go; empty when none are sent. */
    logs: v.string(),
    /** The services whose logs are sent; empty for all, and the kernel's. */
    services: v.array(v.string()),
    /** Milliseconds for an answer. */
    timeout: v.number(),
    attributes: v.record(v.string(), v.string()),
    /** Sent with every request. */
    headers: v.record(v.string(), v.string()),
  }),
})
