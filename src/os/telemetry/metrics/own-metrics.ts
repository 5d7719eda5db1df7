import type { Runtime } from '../../../cosi/runtime.ts'
import type { Store } from '../../../cosi/store.ts'
import type { Supervisor } from '../../../supervise/supervisor.ts'
import { bounds, type CallCounts } from './call-counts.ts'
import type { Metric, Sample } from './exposition.ts'

/** Calls of the machine API, by method: how many, how they ended, how long they took. */
export function callMetrics({ methods }: Pick<CallCounts, 'methods'>): Metric[] {
  const all = [...methods].sort(([a], [b]) => (a < b ? -1 : 1))
  return [
    {
      name: 'ichor_api_calls_total',
      help: 'Calls of the machine API that have ended, by method and outcome.',
      type: 'counter',
      samples: all.flatMap(([method, { outcomes }]) => [...outcomes].sort().map(([code, count]): Sample => [{ method, code }, count])),
    },
    {
      name: 'ichor_api_calls_running',
      help: 'Calls of the machine API under way, streams that are followed included.',
      type: 'gauge',
      samples: all.map(([method, { running }]): Sample => [{ method }, running]),
    },
    {
      name: 'ichor_api_call_duration_seconds',
      help: 'How long calls of the machine API took, from their headers to their status.',
      type: 'histogram',
      samples: all.flatMap(([method, { buckets, seconds }]) => {
        let sum = 0
        const cumulative = buckets.map((count, index): Sample => {
          sum += count
          return [{ method, le: bounds[index] ?? '+Inf' }, sum, '_bucket']
        })
        return [...cumulative, [{ method }, seconds, '_sum'] as Sample, [{ method }, sum, '_count'] as Sample]
      }),
    },
  ]
}

/** Controllers: rounds, time and failures. */
export function controllerMetrics(runtime: Pick<Runtime, 'controllers'>): Metric[] {
  const all = runtime.controllers().map(({ state }) => state)
  const each = (name: string, help: string, type: Metric['type'], value: (state: (typeof all)[number]) => number): Metric => ({
    name: `ichor_controller_${name}`,
    help,
    type,
    samples: all.map((state): Sample => [{ controller: state.name }, value(state)]),
  })
  return [
    each('rounds_total', 'Rounds a controller has made.', 'counter', ({ rounds }) => rounds),
    each('failures_total', 'Rounds of a controller that failed.', 'counter', ({ failures }) => failures),
    each('seconds_total', 'Time that a controller’s rounds took, waiting included.', 'counter', ({ spent }) => spent / 1000),
    each(
      'failures_in_row',
      'Failures since a controller’s last good round; 0 is healthy.',
      'gauge',
      ({ lastError }) => lastError?.inRow ?? 0,
    ),
  ]
}

/** Services: state, health, and how often each was started. */
export function serviceMetrics(supervisor: Pick<Supervisor, 'list'>): Metric[] {
  const all = supervisor.list()
  return [
    {
      name: 'ichor_service_running',
      help: 'Whether a service runs.',
      type: 'gauge',
      samples: all.map(({ id, state }): Sample => [{ service: id }, state === 'Running' ? 1 : 0]),
    },
    {
      name: 'ichor_service_state',
      help: 'The state of a service: 1 for the one it is in.',
      type: 'gauge',
      samples: all.map(({ id, state }): Sample => [{ service: id, state }, 1]),
    },
    {
      name: 'ichor_service_healthy',
      help: 'Whether a service is healthy; one without a health check is left out.',
      type: 'gauge',
      samples: all.filter(({ health }) => !health.unknown).map(({ id, health }): Sample => [{ service: id }, health.healthy ? 1 : 0]),
    },
    {
      name: 'ichor_service_starts_total',
      help: 'How often a service was started since the machine started.',
      type: 'counter',
      samples: all.map(({ id, starts }): Sample => [{ service: id }, starts]),
    },
  ]
}

/** Resources and their watchers. */
export function storeMetrics(store: Pick<Store, 'usage'>): Metric[] {
  const all = store.usage()
  const labels = ({ type, namespace }: (typeof all)[number]) => ({ type, namespace })
  return [
    {
      name: 'ichor_resources',
      help: 'Resources by kind.',
      type: 'gauge',
      samples: all.map((one): Sample => [labels(one), one.resources]),
    },
    {
      name: 'ichor_resource_watchers',
      help: 'Watchers of a kind of resources: controllers and calls of the API.',
      type: 'gauge',
      samples: all.map((one): Sample => [labels(one), one.watchers]),
    },
    {
      name: 'ichor_resource_changes_total',
      help: 'Changes of a kind of resources since the machine started.',
      type: 'counter',
      samples: all.map((one): Sample => [labels(one), one.changes]),
    },
  ]
}
