import { Command, Option } from 'commander'
import { kubeClient } from '../../../../kube/client.ts'
import { accessOf, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import { awaitHealth, healthLine, Unhealthy } from '../../../../os/cluster/health/run.ts'
import { healthSteps } from '../../../../os/cluster/health/steps.ts'
import { toDuration } from '../../../../rpc/proto-time.ts'
import { timerDelay } from '../../../../timing/timer.ts'
import type { Cluster } from '../../cluster.ts'
import { healthPass } from '../../conformance/modes.ts'
import { clusterVersion, SuiteRun, suiteImages } from '../../conformance/suite-run.ts'
import { failedWith, UsageError } from '../../failure.ts'
import { duration, list } from '../../flags.ts'
import { clusterView, discoverMembers, type Members } from '../../health/view.ts'
import type { Io } from '../../io.ts'
import { fetchKubeconfig } from '../../kubeconfig-fetch.ts'

/** Milliseconds for a node's own explanation after the checks. */
const explainTimeout = 10_000

interface HealthFlags {
  controlPlaneNodes?: string[]
  initNode?: string
  workerNodes?: string[]
  k8sEndpoint?: string
  server: boolean
  waitTimeout: number
  runE2e?: boolean
}

/** talosctl health */
export const health = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Wait until the cluster is healthy, and say what it waits for.')
    .option('--control-plane-nodes <node>', 'addresses of the control planes (default: what the cluster knows)', list())
    .option('--init-node <node>', 'one more control plane')
    .option('--worker-nodes <node>', 'addresses of the workers (default: what the cluster knows)', list())
    .option('--k8s-endpoint <url>', 'reach Kubernetes here instead of at the server of its kubeconfig')
    .addOption(new Option('--server').default(true).hideHelp())
    .option('--no-server', 'check from here, not on a node')
    .option('--wait-timeout <duration>', 'how long to wait', duration, 20 * 60_000)
    .option('--run-e2e', 'then run three end-to-end tests of Kubernetes in the cluster, with the same time')
    .action((flags: HealthFlags) => runHealth(io, cluster, flags))

/** Runs the checks on a node or from here, one line to stderr for every change. */
export async function runHealth(io: Io, cluster: Cluster, flags: HealthFlags): Promise<void> {
  await cluster.single('health')
  const members = membersOf(flags)
  try {
    await check(io, cluster, members, flags)
  } finally {
    // Also where every check passed: a node that runs with its last good settings passes them.
    for (const line of await causes(cluster, members)) io.stderr.write(`${line}\n`)
  }
  if (flags.runE2e) await runE2e(io, cluster, flags)
}

/** Runs the end-to-end tests in the cluster, from the image of its version's conformance suite. */
async function runE2e(io: Io, cluster: Cluster, { waitTimeout, k8sEndpoint }: HealthFlags): Promise<void> {
  const access = accessOf(parseKubeconfig(await fetchKubeconfig(cluster)))
  const client = kubeClient(k8sEndpoint ? { ...access, server: k8sEndpoint } : access)
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(timerDelay(waitTimeout))])
  try {
    const run = new SuiteRun({ ...io, signal }, client, suiteImages(await clusterVersion(client, signal)))
    const { exitCode } = await run.pass(healthPass)
    if (exitCode !== 0) throw new Error(`end-to-end tests failed: the suite ended with exit code ${exitCode}`)
  } catch (error) {
    if (!signal.aborted || io.signal.aborted) throw error
    throw new Error(`end-to-end tests did not end within ${waitTimeout / 1000} s: give them more with --wait-timeout`)
  } finally {
    client.close()
  }
}

async function check(io: Io, cluster: Cluster, members: Members | undefined, flags: HealthFlags): Promise<void> {
  if (flags.server) {
    try {
      await onServer(io, cluster, members, flags.waitTimeout)
      return
    } catch (error) {
      if (!failedWith(error, 'Unimplemented')) throw error
    }
  }
  await fromHere(io, cluster, members ?? (await discoverMembers(cluster)), flags)
}

/** The reason of each unhealthy node, one line per node; none of nodes that do not answer or have no explanation. */
async function causes(cluster: Cluster, members: Members | undefined): Promise<string[]> {
  const known = members ?? (await discoverMembers(cluster).catch(() => ({ controlPlanes: [], workers: [] })))
  const request = { namespace: '', type: '', id: '' }
  const lines = [...known.controlPlanes, ...known.workers].map(async (node) => {
    try {
      const [found] = await cluster.ask('ichor.v1.ExplainService/Explain', request, { node, timeout: explainTimeout })
      return found && !found.well ? [`${node}: ${found.summary}`] : []
    } catch {
      return [] // The failed check has already been reported.
    }
  })
  return (await Promise.all(lines)).flat()
}

function membersOf({ controlPlaneNodes = [], initNode, workerNodes = [], k8sEndpoint }: HealthFlags): Members | undefined {
  const controlPlanes = initNode ? [initNode, ...controlPlaneNodes] : controlPlaneNodes
  if (controlPlanes.length === 0 && workerNodes.length > 0) throw new UsageError('--worker-nodes needs --control-plane-nodes beside it')
  return controlPlanes.length === 0 ? undefined : { controlPlanes, workers: workerNodes, kubernetesEndpoint: k8sEndpoint }
}

async function onServer(io: Io, cluster: Cluster, members: Members | undefined, timeout: number): Promise<void> {
  const clusterInfo = {
    controlPlaneNodes: members?.controlPlanes ?? [],
    workerNodes: members?.workers ?? [],
    forceEndpoint: members?.kubernetesEndpoint ?? '',
  }
  const request = { waitTimeout: toDuration(timeout), clusterInfo }
  let last = ''
  try {
    for await (const { message } of cluster.stream('cluster.ClusterService/HealthCheck', request, { timeout: timeout + 10_000 })) {
      last = message.trimEnd()
      io.stderr.write(`${last}\n`)
    }
  } catch (error) {
    if (failedWith(error, 'DeadlineExceeded') && last) throw new Error(`healthcheck error: ${last}`)
    throw error
  }
}

async function fromHere(io: Io, cluster: Cluster, members: Members, flags: HealthFlags): Promise<void> {
  if (members.controlPlanes.length === 0) {
    throw new UsageError('no members are known to the cluster: name them with --control-plane-nodes and --worker-nodes')
  }
  const view = clusterView(cluster, { ...members, kubernetesEndpoint: flags.k8sEndpoint })
  try {
    await awaitHealth(healthSteps(), view, {
      timeout: flags.waitTimeout,
      signal: io.signal,
      onEvent: (event) => io.stderr.write(`${healthLine(event)}\n`),
    })
  } catch (error) {
    throw error instanceof Unhealthy ? new Error(`healthcheck error: ${error.message}`) : error
  } finally {
    view.close()
  }
}
