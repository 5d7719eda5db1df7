import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { boundingSet, capabilities } from '../../linux/process/capabilities.ts'
import { getrlimit } from '../../linux/process/rlimit.ts'
import { messageOf } from '../../wire/error-message.ts'
import { nodeCgroup } from './cgroup-names.ts'
import { ConsoleLog } from './console-log.ts'
import type { ContainerPlan } from './container-spec.ts'
import { type ClusterRecord, clusterPaths, type NodeRecord, nodePaths, readCluster } from './layout.ts'
import { runMachine } from './machine/run-machine.ts'
import { type Forwarding, forward } from './port-forward.ts'
import type { ProcessIdentity } from './process-identity.ts'
import type { SupervisedRun } from './restart-loop.ts'
import { runNode } from './run-node.ts'
import { writeStatus } from './status.ts'

/** Supervises one node until it is shut down or the signal aborts. */
export async function superviseNode(directory: string, self: ProcessIdentity, signal: AbortSignal): Promise<void> {
  const paths = nodePaths(directory)
  const cluster = readCluster(paths.cluster)
  const node = cluster?.nodes.find(({ name }) => name === basename(directory))
  if (!cluster || !node) throw new Error(`supervise "${directory}": its cluster has no such node`)
  const all = clusterPaths(paths.cluster)
  const console = new ConsoleLog(paths.console)
  const forwards: Forwarding[] = []
  try {
    for (const { hostPort, nodePort, protocol } of node.ports) {
      const targets = [{ address: node.ip, port: nodePort }]
      forwards.push(await forward({ protocol, hostAddress: cluster.hostAddress, hostPort, targets: () => targets }))
    }
    const report: SupervisedRun['report'] = (state, restarts, last) => {
      if (!existsSync(directory)) return
      try {
        writeStatus(paths.status, { supervisor: self, state, restarts, last, since: new Date().toISOString() })
      } catch (error) {
        // The node matters more than its status file: with a full disk the error goes to the console.
        console.note(`write status ${state} failed: ${messageOf(error)}`)
      }
    }
    if (cluster.machines) await runMachine({ cluster, machines: cluster.machines, node, directory, console, signal, report })
    else
      await runNode({
        runc: process.env.ICHOR_RUNC ?? `${all.rootfs}/usr/bin/runc`,
        runcRoot: all.runc,
        id: node.name,
        bundle: paths.bundle,
        plan: planOf(cluster, node, all.rootfs, paths),
        console,
        signal,
        report,
      })
  } catch (error) {
    console.note(`supervisor stops: ${messageOf(error)}`)
    throw error
  } finally {
    for (const each of forwards) each.close()
    console.close()
  }
}

function planOf(cluster: ClusterRecord, node: NodeRecord, rootfs: string, paths: ReturnType<typeof nodePaths>): ContainerPlan {
  // Nothing may be granted that this process lacks itself, above all CAP_SYS_RESOURCE.
  const permitted = new Set(capabilities().permitted)
  const hard = getrlimit('nofile').hard
  return {
    hostname: node.name,
    rootfs,
    netns: paths.netns,
    disk: paths.disk,
    cgroup: nodeCgroup(cluster.id, node.name),
    capabilities: boundingSet()
      .filter((name) => permitted.has(name))
      .map((name) => `CAP_${name.toUpperCase()}`),
    openFiles: Math.min(hard, 1_048_576),
    cpus: node.cpus,
    memory: node.memory,
    env: [],
  }
}
