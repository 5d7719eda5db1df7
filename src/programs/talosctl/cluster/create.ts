/**
 * Brings a cluster to the requested state. Every step checks what exists and does what is missing, so that the same code
 * creates a cluster, resumes an interrupted attempt, restarts a cluster after a reboot of the host, and changes node counts.
 */

import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatHostPort } from '../../../wire/host-port.ts'
import { openJournal } from '../../node-supervisor/journal.ts'
import {
  type ClusterRecord,
  clusterPaths,
  gatewayLock,
  type NodeRecord,
  nodeDirectory,
  nodePaths,
  readCluster,
  writeAtomically,
  writeCluster,
} from '../../node-supervisor/layout.ts'
import { holderOf } from '../../node-supervisor/lock.ts'
import { isAlive } from '../../node-supervisor/process-identity.ts'
import { UsageError } from '../failure.ts'
import type { Io } from '../io.ts'
import { checkHost, checkSameKind } from './check-host.ts'
import { hasMergedKubeconfig, mergeIntoKubeconfig, mergeTalosconfig } from './client-files.ts'
import { closing, describe, maintenance } from './closing.ts'
import { destroyCluster, destroyNode } from './destroy.ts'
import { machineEndpoints, reachableKubeconfig } from './engine/reach.ts'
import { awaitHealth } from './health.ts'
import { freePort } from './host/ports.ts'
import { checkNetworks, checkPorts } from './host/preflight.ts'
import { awaitApi, bootstrap, configureIfNeeded, fetchKubeconfig, machineApiPort, nodeState, resetNode } from './node-api.ts'
import { type ConfigRequest, type Configs, checkConfigs, checkSameConfiguration, nodeConfig, provideConfigs } from './plan/configs.ts'
import { checkKubernetesVersion } from './plan/kubernetes-version.ts'
import { type ClusterRequest, planChange, planCluster } from './plan/plan.ts'
import { checkSettled, type RequestedSettings } from './plan/settled.ts'
import { Progress } from './progress.ts'
import { nodeTrouble, provideCluster, provideNode } from './provision.ts'
import { chooseAccelerator } from './qemu/accelerator.ts'
import { holdCluster } from './run-destroy.ts'
import { isRunning } from './show.ts'

/** The request to `cluster create`. */
export interface CreateOptions {
  request: ClusterRequest
  configs: ConfigRequest
  /** Counts that were given, rather than left to their defaults. */
  given: { controlplanes: boolean; workers: boolean }
  /** Requested settings that an existing cluster can no longer change. */
  requested: RequestedSettings
  wait: boolean
  /** Milliseconds; by default as long as nodes of the kind may take. */
  waitTimeout?: number | undefined
  checkReadiness: boolean
  kubeconfig: boolean
  talosconfig?: string | undefined
  yes: boolean
}

/** Milliseconds: to query the state of nodes, and until a cluster is healthy. */
export const timeouts = { state: 10_000, usual: 20 * 60_000, emulated: 90 * 60_000 }

/** Creates a cluster, or brings an existing one to the requested state. */
export async function createCluster(io: Io, options: CreateOptions): Promise<void> {
  const { request } = options
  if (request.engine) return (await import('./engine/create.ts')).createInEngine(io, options, request.engine)
  const directory = join(request.state, request.name)
  const present = readCluster(directory)
  if (present) checkSameKind(present, request)
  checkHost(request, present, options.configs.kubespan)
  const record = present ?? (await newCluster(io, options))
  refuseHalfDestroyed(directory, request.name)
  const unlock = holdCluster(directory)
  try {
    const progress = new Progress(io)
    const waitTimeout = options.waitTimeout ?? (record.machines?.accelerator === 'tcg' ? timeouts.emulated : timeouts.usual)
    const abort = AbortSignal.any([io.signal, AbortSignal.timeout(waitTimeout)])
    const change = present ? planChange(record, withPresentCounts(options, record)) : { added: [], removed: [] }
    if (present) {
      checkSettled(record, request, options.requested, change.added)
      if (existsSync(join(directory, 'controlplane.yaml'))) await checkSameConfiguration(directory, record, options.configs)
    }
    if (present && change.added.length + change.removed.length === 0 && (await isComplete(record, options))) {
      io.stderr.write(`cluster "${record.name}" is running with ${describe(record.nodes)}\n`)
      return closing(io, record, { kubeconfig: options.kubeconfig })
    }
    await confirmRemoval(io, options, change.removed)
    openJournal(directory)
    const wanted = { ...record, nodes: [...record.nodes, ...change.added] }
    writeCluster(directory, wanted)
    await checkConfigs(directory, wanted, options.configs).catch(async (error) => {
      // Nothing was created yet: the request can be corrected and repeated.
      if (!present) await destroyCluster(directory)
      throw error
    })
    // The nodes start while the secrets are made: neither needs the other yet.
    const making = progress.phase('configuration', () => provideConfigs(directory, wanted, options.configs))
    making.catch(() => {})
    const configs = await start(directory, wanted, making, request.unconfigured, progress, abort)
    const remaining = await leave(directory, wanted, change.removed, configs, progress, abort)
    const { context, file } = await mergeTalosconfig(io, directory, record.name, configs.context(remaining), options.talosconfig)
    progress.line(`client configuration: context "${context}" in ${file}`)
    if (request.unconfigured) return maintenance(io, remaining)
    await settle(io, directory, remaining, configs, { ...options, waitTimeout }, progress, abort)
    closing(io, remaining, { progress, kubeconfig: options.kubeconfig })
  } catch (error) {
    throw existsSync(join(directory, 'secrets.yaml')) ? withWayOut(error as Error, request) : error
  } finally {
    if (existsSync(directory)) unlock()
  }
}

/** Refuses a cluster whose removal has begun. */
export function refuseHalfDestroyed(directory: string, name: string): void {
  if (existsSync(clusterPaths(directory).tombstone))
    throw new UsageError(`cluster "${name}" is half destroyed: finish it with "talosctl cluster destroy --name ${name}"`)
}

/** What broke off half-way can be gone on with, or be taken away. */
export function withWayOut(error: Error, { name }: ClusterRequest): Error {
  if (error instanceof UsageError) return error
  const text = `${error.message}\nthe cluster is kept as it is: go on with the same command, or take it away with "talosctl cluster destroy --name ${name}"`
  return Object.assign(new Error(text, { cause: error }), 'code' in error && { code: error.code })
}

async function newCluster(io: Io, { request, configs, requested }: CreateOptions): Promise<ClusterRecord> {
  await checkKubernetesVersion(
    request.kubernetesVersion,
    configs.mirrors.map(({ registry }) => registry),
  )
  const networks = checkNetworks(request.networks, request.state, requested.cidr)
  await checkPorts(request.hostAddress, request.exposedPorts)
  const ports = { kubernetes: await freePort(request.hostAddress), machineApi: await freePort(request.hostAddress) }
  if (!request.machines) return planCluster({ ...request, networks }, ports)
  const { accelerator, reason } = await chooseAccelerator(request.machines.images)
  if (reason) io.stderr.write(`machines are emulated, which is about ten times slower: ${reason}\n`)
  return planCluster({ ...request, networks }, { ...ports, accelerator })
}

/** Counts left to their defaults are those a cluster has. */
export function withPresentCounts({ request, given }: CreateOptions, record: ClusterRecord): ClusterRequest {
  const count = (role: NodeRecord['role']) => record.nodes.filter((node) => node.role === role && !node.leaving).length
  return {
    ...request,
    controlplanes: { ...request.controlplanes, count: given.controlplanes ? request.controlplanes.count : count('controlplane') },
    workers: { ...request.workers, count: given.workers ? request.workers.count : count('worker') },
  }
}

/** Whether there is nothing to do: the nodes are queried, since an existing node may have been reset or broken. */
async function isComplete(record: ClusterRecord, { request, kubeconfig, configs }: CreateOptions): Promise<boolean> {
  const directory = join(request.state, request.name)
  if (!isRunning(directory) || !existsSync(clusterPaths(directory).secrets)) return false
  if (kubeconfig && !hasMergedKubeconfig(directory)) return false
  const { credentials } = await provideConfigs(directory, record, configs)
  const signal = AbortSignal.timeout(timeouts.state)
  const states = await Promise.all(
    record.nodes.map(({ ip }) => nodeState({ address: formatHostPort(ip, machineApiPort), credentials, signal }).catch(() => undefined)),
  )
  return states.every((state) => state?.stage === 'running' && state.ready)
}

export async function confirmRemoval(io: Io, { yes, request }: CreateOptions, removed: readonly NodeRecord[]): Promise<void> {
  if (removed.length === 0 || yes) return
  const names = removed.map(({ name }) => name).join(', ')
  if (!io.interactive) throw new UsageError(`this would remove ${names} from cluster "${request.name}": add --yes to do it`)
  const answer = await io.ask(`remove ${names} from cluster "${request.name}"? [y/N] `)
  if (!/^y(es)?$/i.test(answer)) throw new UsageError('nothing was changed')
}

/** Brings all nodes up and hands its configuration to each that waits for one. */
async function start(
  directory: string,
  record: ClusterRecord,
  making: Promise<Configs>,
  unconfigured: boolean,
  progress: Progress,
  signal: AbortSignal,
): Promise<Configs> {
  const outside = await progress.phase('host', async () => (await provideCluster(directory, record)).outside)
  if (!outside) progress.line('no nftables on this host: nodes reach each other and this host, nothing beyond')
  reloadGateway(directory)
  const nodes = record.nodes.filter(({ leaving }) => !leaving)
  const configured = new Set<NodeRecord>()
  await progress.phase('nodes', async (detail) => {
    let up = 0
    await together(nodes, async (node) => {
      await provideNode(directory, record, node)
      if (unconfigured) return
      const configs = await making
      const own = nodeDirectory(directory, node.name)
      const config = () => {
        const text = nodeConfig(configs, node)
        writeAtomically(nodePaths(own).config, text)
        return text
      }
      const { credentials } = configs
      const installs = record.machines !== undefined
      if (await configureIfNeeded(node.ip, { credentials, config, installs, trouble: () => nodeTrouble(own), signal })) configured.add(node)
      detail(`${++up} of ${nodes.length}`)
    })
  })
  const configs = await making
  if (unconfigured) return configs
  const controlPlanes = nodes.filter(({ role }) => role === 'controlplane')
  await progress.phase('machine API', () => together(controlPlanes, ({ ip }) => awaitApi(ip, configs.credentials, signal)))
  const marker = join(directory, 'bootstrapped')
  // Where no control plane kept its configuration none kept etcd's data either: the cluster begins again.
  if (existsSync(marker) && !controlPlanes.every((node) => configured.has(node))) return configs
  const [first] = controlPlanes
  if (!first) throw new Error(`bootstrap the cluster: it has no control plane`)
  await progress.phase('bootstrap', () => bootstrap(first.ip, configs.credentials, signal))
  writeFileSync(marker, '')
  return configs
}

/** Lets nodes leave their cluster in good order, then takes them away. */
async function leave(
  directory: string,
  record: ClusterRecord,
  removed: readonly NodeRecord[],
  configs: Configs,
  progress: Progress,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const names = new Set(removed.map(({ name }) => name))
  let current = { ...record, nodes: record.nodes.map((node) => (names.has(node.name) ? { ...node, leaving: true } : node)) }
  if (removed.length === 0) return current
  writeCluster(directory, current)
  reloadGateway(directory)
  const staying = current.nodes.find(({ role, leaving }) => role === 'controlplane' && !leaving)
  const kubeconfig = await fetchKubeconfig(staying?.ip ?? '', configs.credentials, signal)
  for (const node of removed) {
    current = await progress.phase(`remove ${node.name}`, async (detail) => {
      const { hasStopped, leaveCluster } = await import('./leave.ts')
      const own = nodeDirectory(directory, node.name)
      await leaveCluster({
        node: node.name,
        kubeconfig,
        signal,
        isDown: () => hasStopped(own),
        reset: () => resetNode(formatHostPort(node.ip, machineApiPort), configs.credentials, signal),
        console: nodePaths(own).console,
        report: detail,
      })
      detail('destroy')
      const next = { ...current, nodes: current.nodes.filter(({ name }) => name !== node.name) }
      writeCluster(directory, next)
      await destroyNode(directory, node.name)
      return next
    })
  }
  return current
}

/** Waits for a healthy cluster and hands out its kubeconfig. */
export async function settle(
  io: Io,
  directory: string,
  record: ClusterRecord,
  configs: Configs,
  options: CreateOptions & { waitTimeout: number },
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  if (!options.wait) return
  await awaitHealth(io, record, configs.credentials, progress, {
    signal: io.signal,
    timeout: options.waitTimeout,
    readiness: options.checkReadiness,
  })
  if (options.kubeconfig) {
    const text = await fetchKubeconfig(machineEndpoints(record)[0] ?? '', configs.credentials, signal)
    const { context, file } = await mergeIntoKubeconfig(io, directory, await reachableKubeconfig(record, text))
    progress.line(`kubeconfig: context "${context}" in ${file}`)
  }
}

/** Makes the gateway reload the record, since the control planes may have changed. */
export function reloadGateway(directory: string): void {
  const holder = holderOf(gatewayLock(directory))
  if (holder && isAlive(holder)) process.kill(holder.pid, 'SIGHUP')
}

/** Does the same for all at once and waits for all, also when one fails. */
export async function together<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const results = await Promise.allSettled(items.map(act))
  const failed = results.find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
}
