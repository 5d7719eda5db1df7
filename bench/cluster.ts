/** A cluster of container nodes as the benchmarks see it: its nodes, their processes, and who may ask them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { benchFolder } from './place.ts'

/** A node and where its things are on this host. */
export interface BenchNode {
  readonly name: string
  readonly role: 'controlplane' | 'worker'
  readonly ip: string
  /** What the node has as its disk. */
  readonly disk: string
  /** Process numbers of this host, by program: `init`, `apid`, `trustd`. */
  processes(): Map<string, number>
}

/** A running cluster. */
export interface BenchCluster {
  readonly nodes: readonly BenchNode[]
  readonly talosconfig: string
  /** PEM of its administrator. */
  readonly credentials: { readonly ca: string; readonly cert: string; readonly key: string }
}

/** The folder of the clusters that benchmarks make. */
export const clustersFolder = (): string => join(benchFolder(), 'clusters')

const programs = new Map([
  ['/sbin/init', 'init'],
  ['/usr/bin/apid', 'apid'],
  ['/usr/bin/trustd', 'trustd'],
])

/** Reads a cluster from its folder of state. */
export function openCluster(name: string, state = clustersFolder()): BenchCluster {
  const folder = join(state, name)
  const record = JSON.parse(readFileSync(join(folder, 'cluster.json'), 'utf8')) as {
    id: string
    nodes: { name: string; role: 'controlplane' | 'worker'; ip: string }[]
  }
  const talosconfig = join(folder, 'talosconfig')
  const { contexts } = parse(readFileSync(talosconfig, 'utf8')) as { contexts: Record<string, { ca: string; crt: string; key: string }> }
  const own = contexts[name]
  if (!own) throw new Error(`"${talosconfig}" has no context "${name}"`)
  const pem = (text: string) => Buffer.from(text, 'base64').toString()
  return {
    talosconfig,
    credentials: { ca: pem(own.ca), cert: pem(own.crt), key: pem(own.key) },
    nodes: record.nodes.map((node) => ({
      ...node,
      disk: join(folder, 'nodes', node.name, 'disk'),
      processes: () => processesIn(`/ichor-${record.id}/${node.name}`),
    })),
  }
}

function processesIn(group: string): Map<string, number> {
  const found = new Map<string, number>()
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      const [argv0 = ''] = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0')
      const program = programs.get(argv0)
      if (program && readFileSync(`/proc/${entry}/cgroup`, 'utf8').includes(group)) found.set(program, Number(entry))
    } catch {
      // It ended while it was looked at.
    }
  }
  return found
}

/** A process's memory in bytes: what is its own alone, and its share of everything. */
export function memoryOf(pid: number): { anonymous: number; pss: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const field = (name: string) => Number(text.match(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm'))?.[1] ?? 0) * 1024
  return { anonymous: field('Anonymous'), pss: field('Pss') }
}

/** Seconds of processor time a process has used. */
export function processorTimeOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
