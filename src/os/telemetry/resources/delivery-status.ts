import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** What became of the logs, events or telemetry for one destination, since the machine started. */
export const DeliveryStatus = defineResource({
  type: 'DeliveryStatuses.runtime.ichor.dev',
  namespace: 'runtime',
  displayType: 'DeliveryStatus',
  aliases: ['delivery', 'deliveries'],
  initials: false,
  columns: {
    Connected: '{.connected}',
    Sent: '{.sent}',
    Behind: '{.behind}',
    Dropped: '{.dropped}',
    'Dropped bytes': '{.droppedBytes}',
    'Last error': '{.lastError}',
  },
  spec: v.object({
    /** What is sent: logs of services, the kernel's log, events, or traces, metrics and logs to a collector. */
    source: v.picklist(['logs', 'kernel', 'events', 'traces', 'metrics', 'log-records']),
    destination: v.string(),
    connected: v.boolean(),
    /** Messages that the receiver has. */
    sent: v.number(),
    /** What is not delivered yet: bytes of logs, else records. */
    behind: v.number(),
    /** Records and events that were lost because they were overwritten before they could be sent. */
    dropped: v.number(),
    /** Bytes of logs that were lost in this way. */
    droppedBytes: v.number(),
    /** Whether something was lost in the last hour. */
    losing: v.boolean(),
    lastError: v.string(),
    /** The last that was delivered of each log: an offset in bytes, or the number of a record. */
    positions: v.record(v.string(), v.number()),
  }),
})
