/** Makes a cluster's things on this host, each one only when it is not there: so it serves a first start as well as one after the host's reboot. */

import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { getSysctl, setSysctl } from '../../../linux/system/sysctl.ts'
import { pause } from '../../../timing/pause.ts'
import { isIPv6 } from '../../../wire/prefix.ts'
import { clusterCgroup, nodeCgroup } from '../../node-supervisor/cgroup-names.ts'
import { supervisorMark } from '../../node-supervisor/console-log.ts'
import { startDiscovery, startGatewaySupervisor, startNodeSupervisor } from '../../node-supervisor/detached.ts'
import { Journal } from '../../node-supervisor/journal.ts'
import {
  type ClusterRecord,
  clusterPaths,
  discoveryAddress,
  discoveryLock,
  gatewayLock,
  type NodeRecord,
  networksOf,
  nodeDirectory,
  nodePaths,
} from '../../node-supervisor/layout.ts'
import { isHeld } from '../../node-supervisor/lock.ts'
import { isAlive } from '../../node-supervisor/process-identity.ts'
import { readStatus } from '../../node-supervisor/status.ts'
import { acceptBridge, hostIptables } from './host/filter.ts'
import { mountImage } from './host/image-mount.ts'
import { makeBridge, plugMachine, plugNode } from './host/links.ts'
import { addMasquerade } from './host/masquerade.ts'

const startTimeout = 15_000

/** What the nodes share: the root file system, the bridge, the gateway's supervisor and the discovery server. Returns whether nodes reach the outside. */
export async function provideCluster(directory: string, cluster: ClusterRecord): Promise<{ outside: boolean }> {
  const paths = clusterPaths(directory)
  const journal = new Journal(paths.journal)
  rmSync(paths.stopped, { force: true })
  // A virtual machine has its own; of the host's side only nftables may be taken from it.
  if (!cluster.machines || existsSync(cluster.image)) mountImage(cluster.image, paths.rootfs, journal)
  makeBridge(cluster, journal)
  journal.write({ kind: 'cgroup', path: clusterCgroup(cluster.id) })
  await openInside(cluster, journal)
  const outside = await openOutside(cluster, paths.rootfs, journal)
  if (!isHeld(gatewayLock(directory))) startGatewaySupervisor(directory, journal)
  if (cluster.discovery && !isHeld(discoveryLock(directory))) startDiscovery(directory, discoveryAddress(cluster), journal)
  return { outside }
}

/** Starts a node: its network, its disk and its supervisor. Returns when its first process runs. */
export async function provideNode(directory: string, cluster: ClusterRecord, node: NodeRecord): Promise<void> {
  const paths = nodePaths(nodeDirectory(directory, node.name))
  const journal = new Journal(clusterPaths(directory).journal)
  const running = () => {
    const status = readStatus(paths.status)
    return status && isAlive(status.supervisor) ? status : undefined
  }
  if (running()) return
  rmSync(paths.status, { force: true })
  journal.write({ kind: 'directory', path: paths.directory, node: node.name })
  mkdirSync(paths.disk, { recursive: true, mode: 0o700 })
  if (cluster.machines) plugMachine(cluster, node, journal)
  else plugNode(cluster, node, paths.netns, journal)
  journal.write({ kind: 'cgroup', path: nodeCgroup(cluster.id, node.name), node: node.name })
  const log = join(paths.directory, 'supervisor.log')
  startNodeSupervisor(paths.directory, journal)
  for (const end = performance.now() + startTimeout; running()?.state !== 'running'; await pause(10)) {
    const last = running()?.last
    if (last) throw new Error(`node "${node.name}" does not start: ${last}: ${tail(paths.console)}`)
    if (performance.now() > end)
      throw new Error(`node "${node.name}" does not start: ${tail(log) || tail(paths.console) || 'its supervisor is silent'}`)
  }
}

/** Why a node will not come up by waiting longer: it ends again and again. */
export function nodeTrouble(directory: string): string | undefined {
  const paths = nodePaths(directory)
  const status = readStatus(paths.status)
  if (!status || status.restarts < 3) return undefined
  return `it was started ${status.restarts + 1} times, ${status.last}; the end of ${paths.console}: ${lastOwnLine(paths.console)}`
}

function lastOwnLine(file: string): string {
  if (!existsSync(file)) return ''
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  return lines.findLast((line) => !line.startsWith(supervisorMark)) ?? ''
}

/** The last line of a log, or nothing. */
export function tail(file: string): string {
  if (!existsSync(file)) return ''
  return readFileSync(file, 'utf8').trimEnd().split('\n').at(-1) ?? ''
}

/** Keeps the host's own rules from dropping what nodes say to each other and to the gateway. */
async function openInside(cluster: ClusterRecord, journal: Journal): Promise<void> {
  const { bridge } = cluster.network
  for (const iptables of hostIptables(networksOf(cluster))) {
    journal.write({ kind: 'iptables', iptables, bridge })
    await acceptBridge(iptables, bridge)
  }
}

async function openOutside(cluster: ClusterRecord, rootfs: string, journal: Journal): Promise<boolean> {
  const table = `ichor_${cluster.id}`
  journal.write({ kind: 'nftables', table, rootfs })
  const open = await Promise.all(networksOf(cluster).map((cidr) => openNetwork(table, cidr, rootfs, journal)))
  return open.includes(true)
}

async function openNetwork(table: string, cidr: string, rootfs: string, journal: Journal): Promise<boolean> {
  // A host that starts to forward IPv6 stops accepting its own routes from routers: only one that forwards already lets nodes out.
  if (isIPv6(cidr)) return getSysctl('net.ipv6.conf.all.forwarding') === '1' && addMasquerade(table, cidr, rootfs)
  if (!(await addMasquerade(table, cidr, rootfs))) return false
  const name = 'net.ipv4.ip_forward'
  const previous = getSysctl(name)
  if (previous !== '1') {
    journal.write({ kind: 'sysctl', name, previous })
    setSysctl(name, '1')
  }
  return true
}
