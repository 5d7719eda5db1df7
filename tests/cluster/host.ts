/** What of clusters there is on this host, to be compared before and after. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { clusterId, linkName } from '../../src/programs/talosctl/cluster/plan/plan.ts'

/** Everything that a cluster could leave behind on the host. */
export interface Traces {
  mounts: string[]
  links: string[]
  cgroups: string[]
  loops: string[]
  processes: string[]
}

const nodeNames = ['controlplane', 'worker'].flatMap((role) => [1, 2, 3, 4, 5].map((number) => `${role}-${number}`))

/** Looks for what belongs to a cluster kept in a folder, and to no other on this host. */
export function traces(state: string, name: string): Traces {
  const id = clusterId(state, name)
  const links = [`ichor${id}`, ...nodeNames.map((node) => linkName(id, `${name}-${node}`))]
  return {
    mounts: readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .map((line) => line.split(' ')[4] ?? '')
      .filter((target) => target.startsWith(`${state}/`)),
    links: readdirSync('/sys/class/net').filter((link) => links.includes(link)),
    cgroups: cgroupMounts()
      .map((root) => join(root, `ichor-${id}`))
      .filter((group) => existsSync(group)),
    loops: loops(join(state, '..')),
    processes: processes(state),
  }
}

function cgroupMounts(): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => / - cgroup2? /.test(line))
    .map((line) => line.split(' ')[4] ?? '')
}

function loops(folder: string): string[] {
  return readdirSync('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .flatMap((name) => {
      try {
        const file = readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8').trim()
        return file.startsWith(`${folder}/`) ? [`${name} ${file}`] : []
      } catch {
        return []
      }
    })
}

function processes(state: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
        return line.includes(`${state}/`) ? [`${pid} ${line}`] : []
      } catch {
        return []
      }
    })
}
