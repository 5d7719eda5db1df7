import { type Method, readers, unary } from '../../../rpc/server/method.ts'
import { collect, type Sources } from '../metrics/collect.ts'
import { exposition } from '../metrics/exposition.ts'

/** The metrics of the node and of the system's own components, in Prometheus' format. */
export const metrics = (machine: Sources): Method =>
  unary('ichor.v1.MetricsService/Metrics', readers, () => ({ messages: [{ text: exposition(collect(machine)) }] }))
