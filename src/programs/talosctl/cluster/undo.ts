/**
 * Removes everything that a journal lists, whether or not it was created: processes first, then what they used, directories last.
 * Each step is safe to repeat. What could not be taken away is returned, so that nobody believes it is gone.
 */

import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { mounts, umount, umountTree } from '../../../linux/fs/mount.ts'
import { removeNetns } from '../../../linux/net/netns.ts'
import { removeCgroup } from '../../../linux/process/cgroup.ts'
import { setSysctl } from '../../../linux/system/sysctl.ts'
import { pause } from '../../../timing/pause.ts'
import { failedWith } from '../../../wire/errno.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { JournalEntry } from '../../node-supervisor/journal.ts'
import { identify, isAlive, type ProcessIdentity } from '../../node-supervisor/process-identity.ts'
import { forgetBridge } from './host/filter.ts'
import { removeLink } from './host/links.ts'
import { removeMasquerade } from './host/masquerade.ts'
import { removeUnit } from './host/unit.ts'

/** Something that is still there, and why. */
export interface Leftover {
  entry: JournalEntry
  reason: string
}

const undoOrder: JournalEntry['kind'][] = [
  'unit',
  'program',
  'process',
  'engine',
  'cgroup',
  'netns',
  'link',
  'nftables',
  'iptables',
  'sysctl',
  'mount',
  'loop',
  'directory',
]
const killTimeout = 5_000

/** Undoes journal entries, the last made first within each kind. */
export async function undo(entries: readonly JournalEntry[]): Promise<Leftover[]> {
  const leftovers: Leftover[] = []
  for (const kind of undoOrder) {
    const same = entries.filter((entry) => entry.kind === kind).reverse()
    const run = async (entry: JournalEntry) => {
      try {
        await undoOne(entry)
      } catch (error) {
        leftovers.push({ entry, reason: messageOf(error) })
      }
    }
    // Nodes end side by side; mounts and directories depend on their order, groups on their depth.
    if (kind === 'mount' || kind === 'directory') for (const entry of same) await run(entry)
    else for (const level of levels(same)) await Promise.all(level.map(run))
  }
  return leftovers
}

/** Entries that may be undone at once, those deepest in their tree first. */
function levels(entries: readonly JournalEntry[]): JournalEntry[][] {
  const depth = (entry: JournalEntry) => (entry.kind === 'cgroup' ? entry.path.split('/').length : 0)
  const byDepth = Map.groupBy(entries, depth)
  return [...byDepth.keys()].sort((a, b) => b - a).map((key) => byDepth.get(key) ?? [])
}

async function undoOne(entry: JournalEntry): Promise<void> {
  switch (entry.kind) {
    case 'unit':
      await removeUnit(entry.name)
      break
    case 'program':
      await Promise.all(findProgram(entry.args).map(endProcess))
      break
    case 'process':
      await endProcess(entry)
      break
    case 'engine':
      await removeFromEngine(entry)
      break
    case 'cgroup':
      await removeCgroup(entry.path, { deadlineMs: 20_000 })
      break
    case 'netns':
      removeNetns(entry.path)
      break
    case 'link':
      removeLink(entry.name)
      break
    case 'nftables':
      await removeMasquerade(entry.table, entry.rootfs)
      break
    case 'iptables':
      if (existsSync(entry.iptables)) await forgetBridge(entry.iptables, entry.bridge)
      break
    case 'sysctl':
      setSysctl(entry.name, entry.previous)
      break
    case 'mount':
      if (mounts().some(({ target }) => target === entry.target)) umount(entry.target, { detach: true })
      break
    case 'loop':
      // The device detaches itself with its last user, which was the mount.
      break
    case 'directory':
      removeDirectory(entry.path)
      break
  }
}

/** An engine that does not answer is a leftover: its containers may still be there. */
async function removeFromEngine({ socket, cluster }: { socket: string; cluster: string }): Promise<void> {
  const { Engine } = await import('./engine/client.ts')
  const { removeCluster } = await import('./engine/provision.ts')
  await removeCluster(await Engine.open(socket, new AbortController().signal), cluster)
}

/** Processes whose whole command line ends in these arguments: those started, but killed before they could write themselves down. */
export function findProgram(args: readonly string[]): ProcessIdentity[] {
  return readdirSync('/proc')
    .filter((name) => /^[1-9]\d*$/.test(name))
    .filter((name) => {
      try {
        const line = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').slice(0, -1)
        return (
          line.length > args.length && line.length <= args.length + 2 && args.every((arg, i) => line[line.length - args.length + i] === arg)
        )
      } catch {
        return false
      }
    })
    .map((name) => identify(Number(name)))
    .filter((identity) => identity !== undefined)
}

async function endProcess(identity: ProcessIdentity): Promise<void> {
  if (identity.pid === process.pid) return
  if (!isAlive(identity)) return
  try {
    process.kill(identity.pid, 'SIGKILL')
  } catch (error) {
    if (!failedWith(error, 'ESRCH')) throw error
  }
  for (const end = performance.now() + killTimeout; isAlive(identity) && performance.now() < end; ) await pause(5)
  if (isAlive(identity)) throw new Error(`process ${identity.pid} does not end`)
}

function removeDirectory(path: string): void {
  if (!existsSync(path)) return
  // Never delete through a mount: what is mounted below is taken away first, and if that fails, so does this.
  umountTree(path)
  if (mounts().some(({ target }) => target === path || target.startsWith(`${path}/`)))
    throw new Error(`"${path}" still has mounts below it`)
  rmSync(path, { recursive: true, force: true })
}
