/** Leads the Kubernetes of a cluster back to the images it had before its last upgrade. */
import type { Cluster } from '../cluster.ts'
import { describe, UsageError } from '../failure.ts'
import type { Io } from '../io.ts'
import { atEndpoints, readConfig } from '../machine/machine.ts'
import { kubernetesOf } from './access.ts'
import { proxyImageOf, syncManifests } from './manifests/sync.ts'
import { nodeOperations, type StepContext } from './operations.ts'
import { outstanding, showSteps } from './outstanding.ts'
import { readState, removeState, statePath, type UpgradeState } from './state.ts'
import { backwards, runSteps, type Step, stepsOf } from './steps.ts'
import type { UpgradeOptions } from './upgrade.ts'

/** The steps of the way back: every component gets the image that was recorded, the kubelets first and the API servers last. */
export function stepsBack({ nodes }: Pick<UpgradeState, 'nodes'>): Step[] {
  return backwards(
    stepsOf(nodes, (node, component) => {
      const before = nodes.find(({ address }) => address === node.address)?.images[component]
      return before && { configured: before.configured, running: before.running }
    }),
  )
}

/** Rolls the cluster back, or shows what that would change. */
export async function rollbackKubernetes(io: Io, cluster: Cluster, options: UpgradeOptions): Promise<void> {
  await cluster.single('upgrade-k8s')
  const [first = ''] = await cluster.nodes()
  await atEndpoints(io, cluster, async (own) => {
    const id = (await readConfig(own, first)).v1alpha1?.cluster?.id ?? ''
    const path = statePath(io.env, id)
    const state = await readState(path)
    if (!state) throw new UsageError(`there is no upgrade of this cluster to go back from: "${path}" is not there`)
    const kubernetes = await kubernetesOf(own, first, options.endpoint)
    const report = (line: string) => io.stderr.write(`${line}\n`)
    const drainTimeout = options.drain ? options.drainTimeout : undefined
    const context: StepContext = { io, cluster: own, kubernetes, report, timeout: options.stepTimeout, drainTimeout }
    const steps = stepsBack(state)
    try {
      if (options.dryRun) {
        await showSteps(io, await outstanding(context, steps))
        io.stdout.write(`nothing was changed: run it without --dry-run to go back from ${state.to} to ${state.from}\n`)
        return
      }
      report(`going back from Kubernetes ${state.to} to ${state.from}`)
      // The pods of kube-proxy follow their manifest, and must not be newer than the API servers.
      const [nodes, controlPlane] = split(steps)
      await runSteps(nodes, nodeOperations(context), false)
      if (state.manifests) await syncManifests(context, first, proxyImageOf(steps), options)
      await runSteps(controlPlane, nodeOperations(context), false)
      // Everything at once is only proven now that the API servers are what they were.
      await runSteps(steps, nodeOperations(context), true)
      await syncManifests(context, first, proxyImageOf(steps), options)
      await removeState(path)
      report(`Kubernetes is back at ${state.from}`)
    } catch (error) {
      if (error instanceof UsageError) throw error
      throw new Error(`${describe(error).replace(/\n*$/, '')}\nrun the same command again: it continues`, { cause: error })
    } finally {
      kubernetes.close()
    }
  })
}

/** The steps that end with kube-proxy, and those of the control plane after them. */
function split(steps: readonly Step[]): [Step[], Step[]] {
  const { true: first = [], false: last = [] } = Object.groupBy(steps, ({ component }) =>
    component === 'kubelet' || component === 'kube-proxy' ? 'true' : 'false',
  )
  return [first, last]
}
