/**
 * Restores etcd of a whole cluster from a backup: every control plane discards its data, all restart, the first one is
 * bootstrapped from the snapshot, and the others join it. Each step can be repeated, so an interrupted restore continues.
 */
import { machine as wire } from '../../../rpc/enums.ts'
import { RpcError } from '../../../rpc/status.ts'
import { bootOf } from '../action/follow.ts'
import type { Cluster } from '../cluster.ts'
import { describe, UsageError } from '../failure.ts'
import { clusterView } from '../health/view.ts'
import type { Io } from '../io.ts'
import { atEndpoints, checkHealthy, readConfig } from '../machine/machine.ts'
import { within } from '../machine/within.ts'
import { humanSize } from '../output/units.ts'
import { machinesOf, together } from '../rotation/machines.ts'
import { saveFrom } from './backup-source.ts'
import {
  prepareFolder,
  type RestoreFiles,
  type RestoreState,
  readRestore,
  removeRestore,
  restoreFiles,
  writeRestore,
} from './restore-state.ts'
import { type Snapshot, snapshotChunks } from './snapshot.ts'

/** The flags of `talosctl etcd restore`. */
export interface RestoreOptions {
  readonly from: string
  readonly identity?: string
  readonly skipHashCheck?: boolean
  readonly controlPlaneNodes?: string[]
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly k8sEndpoint?: string
}

/** Milliseconds: for one call, for a node to restart, for the members to join, and for Kubernetes to answer. */
const [callLimit, restartLimit, joinLimit, kubernetesLimit] = [30_000, 600_000, 600_000, 300_000]
/** Stopping etcd takes up to half a minute. */
const discardLimit = 120_000

interface Restore {
  readonly io: Io
  readonly cluster: Cluster
  readonly files: RestoreFiles
  readonly options: RestoreOptions
  state: RestoreState
  report(line: string): void
}

/** Restores etcd, or shows what a restore would do. */
export const restoreEtcd = (io: Io, cluster: Cluster, options: RestoreOptions): Promise<void> =>
  atEndpoints(io, cluster, async (own) => {
    const { controlPlanes } = await machinesOf(own, options)
    const id = await identityOf(own, controlPlanes)
    const files = restoreFiles(io.env, id)
    const report = (line: string) => io.stderr.write(`${line}\n`)
    const known = await readRestore(files)
    if (known && known.from !== options.from)
      throw new UsageError(`a restore from "${known.from}" was interrupted: continue it, or remove "${files.state}" to begin another one`)
    if (known) report(`continuing the restore that was interrupted before step "${known.step}"`)
    const hashless = options.skipHashCheck === true
    const state = known ?? { from: options.from, hashless, nodes: [...controlPlanes], step: 'discard', boots: {} }
    const restore: Restore = { io, cluster: own, files, options, state, report }
    if (!known && !(await prepare(restore))) return
    await run(restore)
  })

/** `cluster.id`, from the first control plane that answers. */
async function identityOf(cluster: Cluster, nodes: readonly string[]): Promise<string> {
  const problems: string[] = []
  for (const node of nodes) {
    try {
      const { cluster: section } = (await readConfig(cluster, node)).v1alpha1 ?? {}
      const id = section?.id ?? section?.clusterName
      if (id) return id
      problems.push(`${node}: it has no cluster.id`)
    } catch (error) {
      problems.push(`${node}: ${describe(error).trim()}`)
    }
  }
  throw new Error(`no control plane answers: ${problems.join('; ')}`)
}

/** Gets the snapshot and shows the plan; false when nothing else is desired. */
async function prepare({ io, cluster, files, options, state, report }: Restore): Promise<boolean> {
  await prepareFolder(files)
  const { nodes, hashless } = state
  const snapshot = await saveFrom(cluster, options.from, { path: files.snapshot, identity: options.identity, nodes, hashless })
  io.stdout.write(await planOf(cluster, nodes, options.from, snapshot))
  if (!options.dryRun && options.yes) {
    await writeRestore(files, state)
    report(`the snapshot is kept in "${files.snapshot}" until the restore is done`)
    return true
  }
  await removeRestore(files)
  if (options.dryRun) return false
  throw new UsageError('nothing was changed: a restore replaces all data of the cluster, add --yes to do it')
}

async function planOf(cluster: Cluster, nodes: readonly string[], from: string, { info }: Snapshot): Promise<string> {
  const lines = [`snapshot "${from}": revision ${info.revision}, ${info.keys} keys, ${humanSize(info.size)}, hash ${info.hash}`]
  lines.push('what was written to etcd after the snapshot is lost')
  for (const node of nodes) {
    const [reply] = await cluster.ask('ichor.v1.EtcdBackupService/Discard', { dryRun: true }, { node, timeout: callLimit })
    lines.push(`${node}: ${reply?.data ? `discards ${humanSize(reply.size)} of etcd` : 'has no data of etcd'}, restarts`)
  }
  lines.push(`${nodes[0]}: is bootstrapped from the snapshot${nodes.length > 1 ? ', the others join it' : ''}`)
  return `${lines.join('\n')}\n`
}

async function run(restore: Restore): Promise<void> {
  const { state, report } = restore
  const go = async (step: RestoreState['step']) => {
    state.step = step
    await writeRestore(restore.files, state)
  }
  if (state.step === 'discard') {
    await discard(restore)
    await go('restart')
  }
  if (state.step === 'restart') {
    await restart(restore)
    await go('bootstrap')
  }
  if (state.step === 'bootstrap') {
    await bootstrap(restore)
    await go('wait')
  }
  await wait(restore)
  await removeRestore(restore.files)
  report('etcd is restored')
}

/** Every control plane answers and stops its etcd before any of them restarts: none can join the old cluster again. */
async function discard({ cluster, state, report }: Restore): Promise<void> {
  for (const node of state.nodes) {
    const boot = await bootOf(cluster, node)
    if (!boot)
      throw new Error(`${node} does not answer: bring it back, or name the control planes that are left with --control-plane-nodes`)
    state.boots[node] = boot.began
  }
  await each(state.nodes, async (node) => {
    const [reply] = await cluster.ask('ichor.v1.EtcdBackupService/Discard', {}, { node, timeout: discardLimit })
    report(`${node}: ${reply?.data ? `etcd is stopped, its data is in ${reply.movedTo}` : 'etcd is stopped, it has no data'}`)
  })
}

async function restart({ io, cluster, state, report }: Restore): Promise<void> {
  await each(state.nodes, async (node) => {
    const before = state.boots[node]
    if ((await bootOf(cluster, node))?.began === before)
      await cluster.ask('machine.MachineService/Reboot', { mode: wire.RebootRequest.Mode.FORCE }, { node, timeout: callLimit })
    await within(io, restartLimit, `${node} after its restart`, async () => {
      const boot = await bootOf(cluster, node, io.signal)
      if (!boot || boot.began === before) throw new Error('it has not started again yet')
    })
    report(`${node}: started again`)
  })
}

async function bootstrap({ io, cluster, files, state, report }: Restore): Promise<void> {
  const [node = ''] = state.nodes
  const data = await within(io, restartLimit, `${node} to be bootstrapped`, async () => {
    const [held] = await cluster.ask('ichor.v1.EtcdBackupService/Discard', { dryRun: true }, { node, timeout: callLimit })
    if (!held?.data) await checkWaiting(cluster, node)
    return held?.data === true
  })
  // A run before this one got as far as that.
  if (data) return
  await cluster.upload('machine.MachineService/EtcdRecover', uploaded(files.snapshot), { node })
  try {
    await cluster.ask(
      'machine.MachineService/Bootstrap',
      { recoverEtcd: true, recoverSkipHashCheck: state.hashless },
      { node, timeout: 120_000 },
    )
  } catch (error) {
    if (!(error instanceof RpcError) || error.status !== 'AlreadyExists') throw error
  }
  report(`${node}: is bootstrapped from the snapshot`)
}

/** Throws unless etcd of a node waits for the order to bootstrap. */
async function checkWaiting(cluster: Cluster, node: string): Promise<void> {
  const lists = await cluster.ask('machine.MachineService/ServiceList', {}, { node, timeout: callLimit })
  const service = lists.flatMap(({ services }) => services).find(({ id }) => id === 'etcd')
  if (service?.state !== 'Preparing') throw new Error(`etcd is ${service?.state ?? 'not there'}`)
}

async function* uploaded(path: string): AsyncGenerator<{ bytes: Uint8Array }, void> {
  for await (const bytes of snapshotChunks(path)) yield { bytes }
}

/** Until every control plane is a voting member, and Kubernetes answers. */
async function wait({ io, cluster, state, options, report }: Restore): Promise<void> {
  const [first = ''] = state.nodes
  await within(io, joinLimit, 'the members of etcd', async () => {
    for (const node of state.nodes) await checkHealthy(cluster, node, 'etcd')
    const lists = await cluster.ask('machine.MachineService/EtcdMemberList', {}, { node: first, timeout: callLimit })
    const members = lists.flatMap((list) => list.members)
    const voters = members.filter(({ isLearner }) => !isLearner).length
    if (voters !== state.nodes.length || voters !== members.length)
      throw new Error(`${voters} of ${state.nodes.length} control planes are voting members`)
  })
  report(`etcd has ${state.nodes.length} ${state.nodes.length === 1 ? 'member' : 'members'}`)
  const view = clusterView(cluster, { controlPlanes: state.nodes, workers: [], kubernetesEndpoint: options.k8sEndpoint })
  try {
    await within(io, kubernetesLimit, 'Kubernetes', async () => {
      const kubernetes = await view.kubernetes()
      await kubernetes.request('GET', '/api/v1/namespaces/kube-system', { timeout: 10_000 })
    })
  } finally {
    view.close()
  }
  report('Kubernetes answers')
}

/** Runs a step on all nodes at once; fails with all that failed when all have ended. */
async function each(nodes: readonly string[], act: (node: string) => Promise<void>): Promise<void> {
  const results = await Promise.allSettled(nodes.map(act))
  const errors = results.flatMap((result, index) =>
    result.status === 'rejected' ? { what: nodes[index] ?? '', error: result.reason } : [],
  )
  if (errors.length > 0) throw together(errors)
}
