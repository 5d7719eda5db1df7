import type { ClusterRecord } from '../../node-supervisor/layout.ts'
import type { Io } from '../io.ts'
import { machineEndpoints, publishedKubernetes } from './engine/reach.ts'
import type { Credentials } from './node-api.ts'
import type { Progress } from './progress.ts'

/** How to wait for a healthy cluster. */
export interface HealthWait {
  signal: AbortSignal
  timeout: number
  /** Whether nodes have to be ready for pods. */
  readiness: boolean
}

/** Waits until every check holds; each is shown while it is looked at and when it is over. */
export async function awaitHealth(
  io: Io,
  record: ClusterRecord,
  credentials: Credentials,
  progress: Progress,
  wait: HealthWait,
): Promise<void> {
  const { awaitHealth: run, healthLine } = await import('../../../os/cluster/health/run.ts')
  const { healthSteps } = await import('../../../os/cluster/health/steps.ts')
  const { clusterView } = await import('../health/view.ts')
  const { Cluster } = await import('../cluster.ts')
  const ips = (role: string) => record.nodes.filter((node) => node.role === role).map(({ ip }) => ip)
  const cluster = new Cluster(io, { endpoints: machineEndpoints(record), nodes: [], tls: credentials, source: 'cluster create' })
  const view = clusterView(cluster, {
    controlPlanes: ips('controlplane'),
    workers: ips('worker'),
    kubernetesEndpoint: publishedKubernetes(record),
  })
  const steps = healthSteps().filter(({ needsReadyNodes }) => wait.readiness || !needsReadyNodes)
  try {
    await progress.phase('health', (detail) =>
      run(steps, view, {
        timeout: wait.timeout,
        signal: wait.signal,
        interval: 100,
        onEvent: (event) =>
          event.state === 'holds' || event.state === 'skipped' ? progress.line(healthLine(event)) : detail(healthLine(event)),
      }),
    )
  } finally {
    view.close()
    await cluster.close()
  }
}
