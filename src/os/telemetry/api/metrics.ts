import { type Method, readers, unary } from '../../../rpc/server/method.ts'
import type { Machine } from '../../area.ts'
import { exposition } from '../metrics/exposition.ts'
import { memoryMetrics } from '../metrics/memory-metrics.ts'
import { nodeMetrics } from '../metrics/node-metrics.ts'
import { callMetrics, controllerMetrics, serviceMetrics, storeMetrics } from '../metrics/own-metrics.ts'

/** The metrics of the node and of the system's own components, in Prometheus' format. */
export const metrics = ({
  kernel,
  runtime,
  store,
  supervisor,
  calls,
  version,
}: Pick<Machine, 'kernel' | 'runtime' | 'store' | 'supervisor' | 'calls' | 'version'>): Method =>
  unary('ichor.v1.MetricsService/Metrics', readers, () => ({
    messages: [
      {
        text: exposition([
          {
            name: 'ichor_build_info',
            help: 'The build that runs.',
            type: 'gauge',
            samples: [[{ version: version.tag, sha: version.sha, arch: version.arch }, 1]],
          },
          ...nodeMetrics(kernel),
          ...memoryMetrics(kernel, supervisor),
          ...serviceMetrics(supervisor),
          ...controllerMetrics(runtime),
          ...storeMetrics(store),
          ...callMetrics(calls.counts),
        ]),
      },
    ],
  }))
