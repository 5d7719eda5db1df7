/**
 * Clusters of stories whose run was killed: their networks would be taken for the next run on this machine. Called as a program,
 * it destroys them.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { umountTree } from '../../src/linux/fs/mount.ts'
import { destroyCluster } from '../../src/programs/talosctl/cluster/destroy.ts'

/** Where folders of stories are; not /tmp, which may be in memory. */
const parent = '/var/tmp'

/** How the name of such a folder begins, with its path. */
export const storyFolder: string = join(parent, 'ichor-story-')

const ownerFile = 'owner'

/** Notes in its folder that this process runs a story. */
export function own(home: string): void {
  writeFileSync(join(home, ownerFile), `${process.pid} ${startTime(process.pid)}`)
}

/** Destroys the clusters whose story has ended without doing so; returns their folders. */
export async function destroyAbandoned(): Promise<string[]> {
  const homes = readdirSync(parent)
    .map((name) => join(parent, name))
    .filter((home) => home.startsWith(storyFolder) && isAbandoned(home))
  for (const home of homes) {
    const clusters = join(home, 'clusters')
    for (const name of existsSync(clusters) ? readdirSync(clusters) : []) await destroyCluster(join(clusters, name))
    umountTree(home)
    rmSync(home, { recursive: true, force: true })
  }
  return homes
}

/** Whether the process that the folder names has ended; a folder without a name is left alone. */
function isAbandoned(home: string): boolean {
  const path = join(home, ownerFile)
  if (!existsSync(path)) return false
  const [pid = '', since] = readFileSync(path, 'utf8').split(' ')
  return startTime(Number(pid)) !== since
}

/** When a process started, in clock ticks since the machine did (field 22 of /proc/PID/stat); undefined when it has ended. */
function startTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the name in parentheses, which may hold anything.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}

if (import.meta.main) for (const home of await destroyAbandoned()) console.log(`destroyed what an ended run left in "${home}"`)
