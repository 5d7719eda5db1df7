import { existsSync } from 'node:fs'
import { umountTree } from '../../src/linux/fs/mount.ts'
import { Journal } from '../../src/programs/node-supervisor/journal.ts'
import { clusterPaths } from '../../src/programs/node-supervisor/layout.ts'
import { type Leftover, undo } from '../../src/programs/talosctl/cluster/undo.ts'

/**
 * Takes of a cluster what a crash of its host takes: processes, control groups, networks, rules and mounts. Files stay, also those
 * that were locks or that namespaces were mounted on. Returns what could not be taken.
 */
export async function crashHost(directory: string): Promise<Leftover[]> {
  const entries = new Journal(clusterPaths(directory).journal).entries()
  const left = await undo(entries.filter(({ kind }) => !['directory', 'unit', 'netns'].includes(kind)))
  for (const entry of entries) if (entry.kind === 'netns' && existsSync(entry.path)) umountTree(entry.path)
  return left
}
