import { ichor } from '../../../rpc/enums.ts'
import { type Method, readers, unary } from '../../../rpc/server/method.ts'
import { collect, type Sources } from '../metrics/collect.ts'
import { exposition } from '../metrics/exposition.ts'

const { OPENMETRICS } = ichor.v1.MetricsFormat

/** The metrics of the node and of the system's own components. */
export const metrics = (machine: Sources): Method =>
  unary('ichor.v1.MetricsService/Metrics', readers, ({ format }) => ({
    messages: [{ text: exposition(collect(machine), format === OPENMETRICS ? 'openmetrics' : 'text') }],
  }))
