/** Upgrades the Kubernetes of a running cluster: checked first, then component by component and node by node, then the manifests. */
import type { Cluster } from '../cluster.ts'
import { describe, UsageError } from '../failure.ts'
import type { Io } from '../io.ts'
import { atEndpoints, readConfig } from '../machine/machine.ts'
import { within } from '../machine/within.ts'
import { kubernetesOf } from './access.ts'
import { checkRemoved } from './check-removed.ts'
import { type ComponentName, componentNames, imageIn, runs } from './components.ts'
import { previewManifests } from './manifests/apply.ts'
import { readManifests, withProxyImage } from './manifests/read.ts'
import { type ManifestFlags, manifestOptions, proxyImageOf, syncManifests } from './manifests/sync.ts'
import { checkSystems, detectVersion, nodesOf, type UpgradedNode } from './nodes.ts'
import { nodeOperations, runningImage, type StepContext } from './operations.ts'
import { outstanding, showSteps } from './outstanding.ts'
import { pullImages } from './pull.ts'
import { removedItems } from './removed-items.ts'
import { begin, type RecordedNode, readState, statePath, type UpgradeState, writeState } from './state.ts'
import { runSteps, type Step, stepsOf, type Target } from './steps.ts'
import { checkPath, type Version, variantOf, versionFrom } from './versions.ts'

/** The flags of `talosctl upgrade-k8s`. */
export interface UpgradeOptions extends ManifestFlags {
  readonly from?: string
  readonly to: string
  readonly endpoint?: string
  readonly dryRun: boolean
  readonly rollback: boolean
  readonly prePullImages: boolean
  readonly upgradeKubelet: boolean
  readonly apiserverImage: string
  readonly controllerManagerImage: string
  readonly schedulerImage: string
  readonly proxyImage: string
  readonly kubeletImage: string
  readonly drain: boolean
  readonly drainTimeout: number
  readonly stepTimeout: number
}

/** One run of the command. */
interface Run extends StepContext {
  readonly options: UpgradeOptions
  /** The control plane that renders the manifests. */
  readonly first: string
  readonly from: Version
  readonly to: Version
  readonly nodes: readonly UpgradedNode[]
  readonly steps: readonly Step[]
  readonly statePath: string
  /** Of the upgrade before, or of this one in a run before. */
  readonly earlier: UpgradeState | undefined
  readonly recorded: readonly RecordedNode[]
  readonly clusterId: string
}

/** Upgrades the cluster, or shows what would change. */
export async function upgradeKubernetes(io: Io, cluster: Cluster, options: UpgradeOptions): Promise<void> {
  await cluster.single('upgrade-k8s')
  const to = versionFrom('--to', options.to)
  const [first = ''] = await cluster.nodes()
  await atEndpoints(io, cluster, async (own) => {
    const kubernetes = await kubernetesOf(own, first, options.endpoint)
    try {
      const run = await prepare(io, own, { options, first, to, kubernetes })
      if (options.dryRun) await preview(run)
      else await carryOut(run)
    } finally {
      kubernetes.close()
    }
  })
}

async function prepare(
  io: Io,
  cluster: Cluster,
  { options, first, to, kubernetes }: Pick<Run, 'options' | 'first' | 'to' | 'kubernetes'>,
): Promise<Run> {
  const report = (line: string) => io.stderr.write(`${line}\n`)
  const from = options.from
    ? versionFrom('--from', options.from)
    : await within(io, options.stepTimeout, 'read the version of the cluster', () => detectVersion(kubernetes))
  if (!options.from) report(`the lowest version of Kubernetes in the cluster is ${from.text}`)
  checkPath(from, to)
  const all = await within(io, options.stepTimeout, 'read the nodes', () => nodesOf(kubernetes, to))
  const nodes = options.upgradeKubelet ? all : all.filter(({ controlPlane }) => controlPlane)
  report(`control planes: ${listed(nodes.filter(({ controlPlane }) => controlPlane))}`)
  const workers = nodes.filter(({ controlPlane }) => !controlPlane)
  if (workers.length > 0) report(`workers: ${listed(workers)}`)
  await checkSystems(cluster, nodes, to)
  if (to.minor > from.minor) await checkRemoved(cluster, kubernetes, nodes, removedItems[to.minor])
  const id = (await readConfig(cluster, first)).v1alpha1?.cluster?.id
  if (!id) throw new UsageError('the configuration has no cluster.id, by which an upgrade knows its cluster')
  const path = statePath(io.env, id)
  const recorded = await Promise.all(nodes.map((node) => record(cluster, node)))
  return {
    io,
    cluster,
    kubernetes,
    report,
    options,
    first,
    from,
    to,
    nodes,
    steps: stepsOf(nodes, targetOf(options, to, recorded)),
    statePath: path,
    earlier: await readState(path),
    recorded,
    clusterId: id,
    timeout: options.stepTimeout,
    drainTimeout: options.drain ? options.drainTimeout : undefined,
  }
}

const listed = (nodes: readonly UpgradedNode[]) => nodes.map(({ name, address }) => `${name} (${address})`).join(', ')

/** A node with the images that it has now. */
async function record(cluster: Cluster, node: UpgradedNode): Promise<RecordedNode> {
  const config = await readConfig(cluster, node.address)
  const images: RecordedNode['images'] = {}
  for (const component of componentNames) {
    const running = runs(node, component, config) ? await runningImage(cluster, node, component) : undefined
    const configured = imageIn(config, component)
    if (running !== undefined) images[component] = { ...(configured !== undefined && { configured }), running }
  }
  return { ...node, images }
}

/** The images that the flags request, for what a node runs. A kubelet keeps its variant. */
function targetOf(options: UpgradeOptions, to: Version, nodes: readonly RecordedNode[]): Target {
  const names: Record<ComponentName, string> = {
    'kube-apiserver': options.apiserverImage,
    'kube-controller-manager': options.controllerManagerImage,
    'kube-scheduler': options.schedulerImage,
    'kube-proxy': options.proxyImage,
    kubelet: options.kubeletImage,
  }
  return (node, component) => {
    if (component === 'kubelet' && !options.upgradeKubelet) return undefined
    const now = nodes.find(({ address }) => address === node.address)?.images[component]
    if (!now) return undefined
    const image = `${names[component]}:v${to.text}${component === 'kubelet' ? variantOf(now.running) : ''}`
    return { configured: image, running: image }
  }
}

/** Shows what every step and the manifests would change. Nothing is pulled and nothing is changed, on no node and in no list. */
async function preview(run: Run): Promise<void> {
  const { io, cluster, kubernetes, steps, options, first } = run
  const left = await outstanding(run, steps)
  await showSteps(io, left)
  const proxy = proxyImageOf(steps)
  const manifests = await readManifests(cluster, first)
  const next = proxy === undefined ? manifests : withProxyImage(manifests, proxy)
  const differ = await previewManifests(io, kubernetes, next, manifestOptions(options))
  io.stdout.write(
    left.length > 0 || differ ? 'nothing was changed: run it without --dry-run\n' : `no changes: the cluster is at ${run.to.text}\n`,
  )
}

async function carryOut(run: Run): Promise<void> {
  const { io, cluster, steps, options, first, report, from, to } = run
  report(`upgrading Kubernetes from ${from.text} to ${to.text}`)
  const left = await outstanding(run, steps)
  if (options.prePullImages) await pullImages(io, cluster, left, report)
  const state = stateOf(run, left.length === 0)
  await writeState(run.statePath, state)
  try {
    await runSteps(steps, nodeOperations(run), true)
    state.manifests = true
    await writeState(run.statePath, state)
    await syncManifests(run, first, proxyImageOf(steps), options)
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new Error(
      `${describe(error).replace(/\n*$/, '')}\nrun the same command again to continue, or "talosctl upgrade-k8s --rollback" to go back`,
      { cause: error },
    )
  }
  state.done = true
  await writeState(run.statePath, state)
  report(`Kubernetes is at ${to.text}`)
}

/** The state of this upgrade. One that has nothing to do leaves the state of the one before, so that it can still be rolled back. */
function stateOf({ earlier, clusterId, from, to, recorded }: Run, nothingLeft: boolean): UpgradeState {
  if (earlier?.done && nothingLeft) return earlier
  return begin(earlier, { cluster: clusterId, from: from.text, to: to.text, nodes: [...recorded] })
}
