/** Faults of one node of a cluster. Each ends by itself; the caller waits until the node is healthy again. */
import { closeSync, fsyncSync, openSync, readdirSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, succeeded, type TestCluster } from '../../cluster/cluster.ts'
import { run } from '../etcd-tools.ts'
import type { LimitedDisks } from './limited-disks.ts'
import { otherCommit, type Releases } from './releases.ts'

const etcdProcess = '/usr/local/bin/etcd '
/** Seconds for which a node is frozen or cut off: longer than an election takes. */
const faultTime = 8

/** A node of the cluster as faults need it. */
export interface Node {
  readonly name: string
  readonly ip: string
  /** The host's end of its cable. */
  readonly link: string
}

/** A fault: from its beginning to its end. */
export type Fault = (cluster: TestCluster, node: Node) => Promise<void>

/** All faults by name. Disks are filled where they are limited, and a node is upgraded to the other of two releases. */
export const faultsWith = (disks: LimitedDisks, releases: Releases): Readonly<Record<string, Fault>> => ({
  'disk full': (cluster, node) => diskFull(cluster, node, disks),
  'node upgraded': async (cluster, node) => {
    const other = await releases.change()
    await restarted(cluster, node, async () => void succeeded(await cluster.talosctl('-n', node.ip, 'reboot', '--wait=false')))
    await eventually(async () => {
      const { stdout } = succeeded(await cluster.talosctl('-n', node.ip, 'version'))
      if (stdout.includes(otherCommit) !== other) throw new Error(`${node.name} does not run the other release: ${stdout}`)
    })
  },
  'etcd killed': async (cluster, node) => void process.kill(etcdOf(cluster, node), 'SIGKILL'),
  'node killed': async (cluster, node) => restarted(cluster, node, async () => void process.kill(cluster.initOf(node.name), 'SIGKILL')),
  'etcd frozen': (cluster, node) => frozen([etcdOf(cluster, node)]),
  'node frozen': (cluster, node) => frozen(cluster.processesIn(node.name)),
  'node cut off': cutOff,
  'two cut off from each other': cutApart,
  'node rebooted': (cluster, node) =>
    restarted(cluster, node, async () => void succeeded(await cluster.talosctl('-n', node.ip, 'reboot', '--wait=false'))),
  'node reset': (cluster, node) =>
    restarted(cluster, node, async () => {
      const flags = ['--system-labels-to-wipe', 'EPHEMERAL', '--reboot', '--wait=false']
      succeeded(await cluster.talosctl('-n', node.ip, 'reset', ...flags))
    }),
  'disk wiped': (cluster, node) =>
    restarted(cluster, node, async () => {
      const flags = ['--graceful=false', '--system-labels-to-wipe', 'EPHEMERAL', '--reboot', '--wait=false']
      succeeded(await cluster.talosctl('-n', node.ip, 'reset', ...flags))
    }),
  'data damaged': damageData,
})

/** The data folder of a node's etcd, as the host sees it. */
const dataOf = (cluster: TestCluster, { name }: Node): string => `/proc/${cluster.initOf(name)}/root/var/lib/etcd`

/** The host's pid of a node's etcd. */
export function etcdOf(cluster: TestCluster, { name }: Pick<Node, 'name'>): number {
  const pid = cluster.processIn(name, etcdProcess)
  if (pid === undefined) throw new Error(`etcd does not run on ${name}`)
  return pid
}

async function restarted(cluster: TestCluster, { name }: Node, act: () => Promise<void>): Promise<void> {
  const before = cluster.initOf(name)
  await act()
  await eventually(async () => {
    if (cluster.initOf(name) === before) throw new Error(`${name} has not restarted`)
  }, 180)
}

async function frozen(pids: readonly number[]): Promise<void> {
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => {
    for (const pid of pids) {
      try {
        process.kill(pid, name)
      } catch {
        // It has ended.
      }
    }
  }
  signal('SIGSTOP')
  await Bun.sleep(faultTime * 1000)
  signal('SIGCONT')
}

async function cutOff(cluster: TestCluster, { link }: Node): Promise<void> {
  const { bridge } = cluster.record().network
  succeeded(await run(['ip', 'link', 'set', link, 'nomaster']))
  await Bun.sleep(faultTime * 1000)
  succeeded(await run(['ip', 'link', 'set', link, 'master', bridge]))
}

/** Discards what a node sends to the next one: both still reach the third, which may elect either of them. */
async function cutApart(cluster: TestCluster, node: Node): Promise<void> {
  const nodes = cluster.nodes()
  const other = nodes[(nodes.findIndex(({ name }) => name === node.name) + 1) % nodes.length]
  const route = (verb: 'add' | 'del') =>
    run(['nsenter', '-t', String(cluster.initOf(node.name)), '-n', 'ip', 'route', verb, 'blackhole', `${other?.ip}/32`])
  succeeded(await route('add'))
  await Bun.sleep(faultTime * 1000)
  succeeded(await route('del'))
}

/** Fills the disk to its last byte, kills etcd, which cannot write while it starts, and frees the disk after a while. */
async function diskFull(cluster: TestCluster, node: Node, disks: LimitedDisks): Promise<void> {
  await disks.fill(node.name)
  try {
    await Bun.sleep((faultTime * 1000) / 2)
    // It may have ended already, since it cannot write.
    const pid = cluster.processIn(node.name, etcdProcess)
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
    await Bun.sleep(faultTime * 1000)
  } finally {
    disks.free(node.name)
  }
}

/** Overwrites a part of the log and of the database while etcd is stopped, as a failing disk does, and kills it. */
export async function damageData(cluster: TestCluster, node: Node): Promise<void> {
  const pid = etcdOf(cluster, node)
  process.kill(pid, 'SIGSTOP')
  const data = dataOf(cluster, node)
  const log = readdirSync(join(data, 'member/wal'))
    .filter((name) => name.endsWith('.wal'))
    .sort()
    .at(-1)
  overwrite(join(data, 'member/wal', log ?? ''), 4096)
  overwrite(join(data, 'member/snap/db'), 16_384)
  process.kill(pid, 'SIGKILL')
}

function overwrite(path: string, from: number): void {
  const file = openSync(path, 'r+')
  try {
    writeSync(file, Buffer.alloc(Math.min(65_536, statSync(path).size - from), 0x5a), 0, undefined, from)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
