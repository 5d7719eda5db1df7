import { existsSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { failedWith } from '../../../wire/errno.ts'
import { Journal, type JournalEntry } from '../../node-supervisor/journal.ts'
import { clusterPaths } from '../../node-supervisor/layout.ts'
import { type Leftover, undo } from './undo.ts'

/** Some of a cluster's things would not go. */
class LeftoversError extends Error {
  override name = 'LeftoversError'
  constructor(leftovers: readonly Leftover[], command: string) {
    const lines = leftovers.map(({ entry, reason }) => `  ${describe(entry)}: ${reason}`)
    super(`not everything could be taken away:\n${lines.join('\n')}\nrun "${command}" again`)
  }
}

/**
 * Takes a cluster away from its journal alone: whatever state it is in, and however often this was tried before.
 * The journal is the last thing to go, so that an interrupted attempt can be repeated.
 */
export async function destroyCluster(directory: string): Promise<void> {
  const paths = clusterPaths(directory)
  if (!isCluster(directory)) return
  // From here on no supervisor starts, and one that is just starting ends by itself.
  mark(paths.tombstone)
  const journal = new Journal(paths.journal)
  const command = `talosctl cluster destroy --name ${directory.split('/').at(-1)} --state ${dirname(directory)}`
  let done = 0
  for (let round = 0; round < 5; round++) {
    const entries = journal.entries()
    if (entries.length === done) break
    done = entries.length
    // A supervisor that was being started may have written itself down meanwhile: hence another round when there is more.
    const leftovers = await undo(entries.filter((entry) => !handedOver(entry, directory)))
    if (leftovers.length > 0) throw new LeftoversError(leftovers, command)
  }
  const last = [paths.journal, paths.tombstone]
  const others = readdirSync(directory).map((name) => join(directory, name))
  const leftovers = await undo(others.filter((path) => !last.includes(path)).map((path) => ({ kind: 'directory', path })))
  if (leftovers.length > 0) throw new LeftoversError(leftovers, command)
  for (const path of last) rmSync(path, { force: true })
  rmdirSync(directory)
}

/** A disk that is too full for an empty file must not keep a cluster from going. */
function mark(file: string): void {
  try {
    writeFileSync(file, '', { mode: 0o600 })
  } catch (error) {
    if (!failedWith(error, 'ENOSPC')) throw error
  }
}

/** Whether a directory is that of a cluster, or the rest of one, so that no other is ever removed. */
export function isCluster(directory: string): boolean {
  const { record, journal, tombstone } = clusterPaths(directory)
  return [record, journal, tombstone].some((path) => existsSync(path))
}

/** A kernel parameter of the host is put back by the last cluster that wants it changed: another one here inherits the duty. */
function handedOver(entry: JournalEntry, directory: string): boolean {
  if (entry.kind !== 'sysctl') return false
  const folder = dirname(directory)
  const heir = readdirSync(folder)
    .map((name) => join(folder, name))
    .find((other) => other !== directory && existsSync(clusterPaths(other).record) && !existsSync(clusterPaths(other).tombstone))
  if (!heir) return false
  new Journal(clusterPaths(heir).journal).write(entry)
  return true
}

/** Takes one node's things away; the rest of the cluster stays. */
export async function destroyNode(clusterDirectory: string, node: string): Promise<void> {
  const journal = new Journal(clusterPaths(clusterDirectory).journal)
  const leftovers = await undo(journal.entries().filter((entry) => entry.node === node))
  if (leftovers.length > 0) throw new LeftoversError(leftovers, 'talosctl cluster create … with the same counts')
  journal.forget(node)
}

function describe(entry: JournalEntry): string {
  switch (entry.kind) {
    case 'link':
      return `link ${entry.name}`
    case 'mount':
      return `mount ${entry.target}`
    case 'process':
      return `process ${entry.pid}`
    case 'nftables':
      return `nftables table ${entry.table}`
    case 'iptables':
      return `iptables rules of ${entry.bridge}`
    case 'sysctl':
      return `sysctl ${entry.name}`
    case 'program':
      return `program ${entry.args.join(' ')}`
    case 'unit':
      return `systemd unit ${entry.name}`
    case 'engine':
      return `containers and network of cluster "${entry.cluster}" in the engine at ${entry.socket}`
    case 'loop':
      return `loop device of ${entry.backing}`
    default:
      return `${entry.kind} ${entry.path}`
  }
}
