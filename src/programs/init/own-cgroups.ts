/**
 * Control groups of a node that an engine started in the host's namespace of them: Docker on version 1, Podman, and every privileged
 * pod. There the mounted trees and /proc/self/cgroup disagree, and no runtime can make groups for pods.
 */
import * as files from '../../linux/fs/files.ts'
import * as mount from '../../linux/fs/mount.ts'
import { unshare } from '../../linux/process/namespaces.ts'
import { execve, resetForExec } from '../../linux/process/process.ts'

const root = '/sys/fs/cgroup'
const flags = ['nosuid', 'nodev', 'noexec'] as const

/** One line of /proc/self/cgroup (cgroups(7)). */
export interface OwnGroup {
  /** Controllers of a tree of version 1, or its name as in `name=systemd`; empty for version 2. */
  readonly controllers: string
  readonly path: string
}

/** Parses /proc/self/cgroup. */
export function ownGroups(text: string): OwnGroup[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [, controllers = '', ...path] = line.split(':')
      return { controllers, path: path.join(':') }
    })
}

/**
 * Gives the machine a namespace of control groups, in which its own groups are the roots, and starts init again in it; returns when it
 * has one. A namespace is a thread's until execve, which is why the program is replaced. Throws SystemError.
 */
export function enterOwnCgroups(environment: Readonly<Record<string, string | undefined>>): void {
  const groups = ownGroups(files.readText('/proc/self/cgroup'))
  if (groups.every(({ path }) => path === '/')) return
  unshare(['cgroup'])
  mount.umountTree(root)
  const trees = groups.filter(({ controllers }) => controllers !== '')
  if (trees.length === 0) mount.mount({ source: 'cgroup2', target: root, type: 'cgroup2', flags })
  else mount.mount({ source: 'tmpfs', target: root, type: 'tmpfs', flags, data: 'mode=0755' })
  for (const { controllers } of trees) {
    const target = `${root}/${controllers.replace('name=', '')}`
    files.mkdirAll(target)
    mount.mount({
      source: 'cgroup',
      target,
      type: 'cgroup',
      flags,
      data: controllers.startsWith('name=') ? `none,${controllers}` : controllers,
    })
  }
  const kept = Object.entries(environment).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  resetForExec(3)
  execve('/sbin/init', ['/sbin/init'], Object.fromEntries(kept))
}
