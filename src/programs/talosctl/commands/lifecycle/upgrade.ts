import { Command, Option } from 'commander'
import { background } from '../../../../cosi/background.ts'
import { silent } from '../../../../cosi/log.ts'
import { defaultInstallImage } from '../../../../os/config/generate/versions.ts'
import { machine as wire } from '../../../../rpc/enums.ts'
import { NodeProgress, type ProgressMode } from '../../action/progress.ts'
import type { Cluster } from '../../cluster.ts'
import { NodeErrors, UsageError } from '../../failure.ts'
import { duration } from '../../flags.ts'
import { discoverMembers } from '../../health/view.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured } from '../../output/output.ts'
import { table } from '../../output/table.ts'
import { planSchema, showPlan } from '../../release/plan.ts'
import { sendImage } from '../../release/send.ts'
import { awaitTrial, beforeTrial } from '../../release/trial.ts'
import { specOf } from '../../resource/definition.ts'

interface UpgradeFlags extends OutputFlags {
  image: string
  /** true is the whole cluster; a name is the cluster behind a proxy endpoint. */
  cluster?: string | true
  debug?: boolean
  drain: boolean
  drainForce?: boolean
  drainTimeout: number
  dryRun?: boolean
  force?: boolean
  insecure?: boolean
  legacy?: boolean
  preserve?: boolean
  progress: ProgressMode
  reboot: boolean
  rebootMode: 'default' | 'powercycle' | 'force'
  stage?: boolean
  timeout: number
  wait: boolean
}

/** talosctl upgrade */
export const upgrade = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Upgrade nodes: the release is written beside the one that runs, tried, and kept when the node is as well as before.')
    .option(
      '-i, --image <image>',
      'installer image: a reference, or an OCI layout (folder or archive) of this computer',
      defaultInstallImage,
    )
    .option(
      '-c, --cluster [name]',
      'without a name: all nodes of the cluster, one after the other; with a name: the cluster behind a proxy endpoint',
    )
    .option('--dry-run', 'only say what would be done')
    .option('--debug', 'show the kernel log while waiting')
    .addOption(new Option('--drain').default(true).hideHelp())
    .option('--no-drain', 'leave the pods of the node where they are')
    .option('--drain-timeout <duration>', 'how long pods may take to leave', duration, 5 * 60_000)
    .option('--drain-force', 'also when pods have not left in time')
    .option('-f, --force', 'also a release that failed on the node before, or does not fit its cluster')
    .option('--insecure', 'upgrade nodes in maintenance mode')
    .option('--legacy', 'let the node do everything by itself, as older nodes do')
    .option('--namespace <namespace>', 'where the image is pulled to: system, or inmem', 'system')
    .option('--no-reboot', 'write the release; the next reboot tries it')
    .option('-p, --preserve', 'keep the data of the node, which is always done')
    .addOption(new Option('--progress <mode>', 'how to show what happens').choices(['auto', 'plain', 'none']).default('auto'))
    .addOption(new Option('-m, --reboot-mode <mode>', 'how to reboot').choices(['default', 'powercycle', 'force']).default('default'))
    .option('-s, --stage', 'stop at once and start the release, without letting pods leave')
    .option('--timeout <duration>', 'how long to wait for each node', duration, 30 * 60_000)
    .addOption(new Option('--wait').default(true).hideHelp())
    .option('--no-wait', 'only start it')
    .addOption(
      outputOption(planSchema, {
        about: 'with --dry-run a list, each item of which is',
        others: { 'with --no-wait': { node: 'string', ack: 'string', started: 'time' } },
      }),
    )
    .action((flags: UpgradeFlags) => runUpgrade(io, cluster, flags))

/** Upgrades the named nodes, or all of the cluster, one after the other; stops at the first that fails. */
export async function runUpgrade(io: Io, cluster: Cluster, flags: UpgradeFlags): Promise<void> {
  const server = flags.insecure ? await cluster.insecure() : cluster
  try {
    const nodes = await nodesToUpgrade(io, server, flags)
    if (flags.dryRun) {
      await showPlan(io, server, flags, async (node) => ({
        imageName: await sendImage(io, server, node, flags.image),
        force: flags.force === true,
      }))
      return
    }
    const progress = new NodeProgress(io, flags.progress)
    const started: { node: string; ack: string; started: string }[] = []
    for (const [index, node] of nodes.entries()) {
      const name = node ?? (await server.peer())
      const report = (state: string) => progress.update(name, state)
      try {
        await upgradeNode(io, server, node, flags, report)
        if (!flags.wait) started.push({ node: name, ack: 'Upgrade request received', started: new Date().toISOString() })
        if (flags.cluster === true && flags.wait && index < nodes.length - 1) await healthy(io, cluster, node)
      } catch (error) {
        if (io.signal.aborted) throw error
        throw new NodeErrors([{ node: name, error: error as Error }])
      }
    }
    if (flags.wait || structured(io, flags.output, started)) return
    io.stdout.write(table([['NODE', 'ACK', 'STARTED'], ...started.map(({ node, ack, started: time }) => [node, ack, time])]))
  } finally {
    if (server !== cluster) await server.close()
  }
}

/** Control planes come first: the others need nothing but them. */
async function nodesToUpgrade(io: Io, cluster: Cluster, flags: UpgradeFlags): Promise<(string | undefined)[]> {
  if (flags.cluster !== true) {
    if (flags.insecure) return [undefined]
    return [...(await cluster.named('upgrade'))]
  }
  if (flags.insecure) throw new UsageError('--cluster does not go with --insecure: nodes in maintenance belong to no cluster')
  const { controlPlanes, workers } = await discoverMembers(cluster)
  if (controlPlanes.length === 0) throw new UsageError('no members of the cluster are known: name the nodes with --nodes')
  io.stderr.write(`upgrading ${[...controlPlanes, ...workers].join(', ')}, in this order\n`)
  return [...controlPlanes, ...workers]
}

async function upgradeNode(
  io: Io,
  cluster: Cluster,
  node: string | undefined,
  flags: UpgradeFlags,
  report: (state: string) => void,
): Promise<void> {
  const before = await beforeTrial(io, cluster, node)
  const image = await sendImage(io, cluster, node, flags.image)
  const wait = { before, timeout: flags.timeout, report }
  const done = new AbortController()
  if (flags.debug) background(kernelLog(io, cluster, node, done.signal), silent)
  try {
    if (flags.insecure) {
      await written(cluster, node, image, flags, report)
      if (flags.wait && flags.reboot) await awaitTrial(io, cluster, node, wait)
      return
    }
    if (flags.legacy || flags.stage) {
      await byItself(cluster, node, image, flags)
      if (flags.wait) await awaitTrial(io, cluster, node, wait)
      return
    }
    await written(cluster, node, image, flags, report)
    if (!flags.reboot) return
    const readmit = flags.drain && (await isRegistered(cluster, node)) ? await drained(io, cluster, node, flags) : undefined
    const { DEFAULT, POWERCYCLE, FORCE } = wire.RebootRequest.Mode
    await cluster.ask(
      'machine.MachineService/Reboot',
      { mode: { default: DEFAULT, powercycle: POWERCYCLE, force: FORCE }[flags.rebootMode] },
      { node },
    )
    if (flags.wait) await awaitTrial(io, cluster, node, wait).finally(() => readmit?.())
    else if (readmit) io.stderr.write('the node stays cordoned: "kubectl uncordon" lets pods come again\n')
  } finally {
    done.abort()
  }
}

/** Has the node write the release beside the one that runs. */
async function written(
  cluster: Cluster,
  node: string | undefined,
  image: string,
  flags: UpgradeFlags,
  report: (state: string) => void,
): Promise<void> {
  if (flags.force || flags.insecure) {
    // In maintenance nobody may reboot a machine, so it does it by itself.
    const request = { imageName: image, force: flags.force === true, reboot: flags.insecure === true && flags.reboot }
    for await (const { message } of cluster.stream('ichor.v1.ReleaseService/Upgrade', request, { node })) report(message)
    return
  }
  const request = { source: { imageName: image } }
  for await (const { progress } of cluster.stream('machine.LifecycleService/Upgrade', request, { node })) {
    if (progress?.message) report(progress.message)
    if (progress?.exitCode) throw new Error(`the upgrade ended with exit code ${progress.exitCode}`)
  }
}

/** Lets the node do everything from the pull to the restart. */
async function byItself(cluster: Cluster, node: string | undefined, image: string, flags: UpgradeFlags): Promise<void> {
  const { DEFAULT, POWERCYCLE } = wire.UpgradeRequest.RebootMode
  const request = {
    image,
    preserve: true,
    stage: flags.stage === true,
    force: flags.force === true,
    rebootMode: flags.rebootMode === 'powercycle' ? POWERCYCLE : DEFAULT,
  }
  await cluster.ask('machine.MachineService/Upgrade', request, { node, timeout: 30 * 60_000 })
}

async function drained(io: Io, cluster: Cluster, node: string | undefined, flags: UpgradeFlags): Promise<() => Promise<void>> {
  const { drainNodes } = await import('../../action/drain.ts')
  return drainNodes(io, cluster, [node ?? (await cluster.peer())], {
    timeout: flags.drainTimeout,
    progress: flags.progress,
    force: flags.drainForce,
  })
}

/** Whether the node is one of Kubernetes, so that there is something to drain. */
async function isRegistered(cluster: Cluster, node: string | undefined): Promise<boolean> {
  const request = { namespace: 'k8s', type: 'NodeStatuses.kubernetes.talos.dev' }
  for await (const { resource } of cluster.stream('cosi.resource.State/List', request, { node, timeout: 10_000 }))
    if (resource && specOf(resource)) return true
  return false
}

async function healthy(io: Io, cluster: Cluster, node: string | undefined): Promise<void> {
  const request = {
    waitTimeout: { seconds: 20 * 60, nanos: 0 },
    clusterInfo: { controlPlaneNodes: [], workerNodes: [], forceEndpoint: '' },
  }
  for await (const { message } of cluster.stream('cluster.ClusterService/HealthCheck', request, { node, timeout: 21 * 60_000 }))
    io.stderr.write(`${message.trimEnd()}\n`)
}

async function kernelLog(io: Io, cluster: Cluster, node: string | undefined, signal: AbortSignal): Promise<void> {
  try {
    for await (const { bytes } of cluster.stream('machine.MachineService/Dmesg', { follow: true, tail: true }, { node, signal }))
      io.stderr.write(Buffer.from(bytes).toString('utf8'))
  } catch {
    // it ends with the node
  }
}
