import { Command, Option } from 'commander'
import { common } from '../../../../rpc/enums.ts'
import { tarEntries } from '../../../../wire/tar/read.ts'
import { gunzip } from '../../archive/decompress.ts'
import { type Column, columnsOf, presets } from '../../cgroups/columns.ts'
import { type Group, readGroups, walkGroups } from '../../cgroups/tree.ts'
import type { Cluster } from '../../cluster.ts'
import { failedWith, UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured } from '../../output/output.ts'
import { table } from '../../output/table.ts'
import { readText } from '../../read-text.ts'

const root = '/sys/fs/cgroup'

interface CgroupsOptions extends OutputFlags {
  preset?: string
  schemaFile?: string
  skipCriResolve?: boolean
}

const examples = `
Examples:
  talosctl cgroups -n 10.5.0.2                         memory of every group
  talosctl cgroups -n 10.5.0.2 --preset psi            what waits for what
  talosctl cgroups -n 10.5.0.2 --schema-file cols.yaml columns of your own:
                                                         columns:
                                                           - {name: Current, file: memory.current, form: bytes}
                                                           - {name: User, file: cpu.stat, key: user_usec, form: microseconds}
`

/** talosctl cgroups */
export const cgroups = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Show the control groups of a node as a tree, with what they use and what they are allowed.')
    .addOption(new Option('--preset <name>', 'what to show of each').choices(Object.keys(presets)))
    .addOption(new Option('--schema-file <file>', 'a file that describes the columns').conflicts('preset'))
    .option('--skip-cri-resolve', 'leave the groups of containers with their numbers instead of their names')
    .addOption(outputOption({ name: 'string', '<column>': 'string' }))
    .addHelpText('after', examples)
    .action((options: CgroupsOptions) => runCgroups(io, cluster, options))

/** Prints the tree of one node. */
export async function runCgroups(io: Io, cluster: Cluster, options: CgroupsOptions): Promise<void> {
  const columns = options.schemaFile
    ? columnsOf(await readText(options.schemaFile), options.schemaFile)
    : presets[options.preset ?? 'memory']
  if (!columns) throw new UsageError(`there is no preset "${options.preset}": there are ${Object.keys(presets).join(', ')}`)
  await cluster.single('cgroups')
  await versionTwo(cluster)
  const tree = await readGroups(tarEntries(gunzip(archive(cluster))))
  const [names, containers] = await Promise.all([
    columns.some(({ name }) => name === 'Processes') ? processNames(cluster) : new Map<number, string>(),
    options.skipCriResolve ? new Map<string, string>() : containerNames(cluster),
  ])
  const shown = [...walkGroups(tree)].map(({ group, path }) => ({
    name: path,
    ...Object.fromEntries(columns.map(({ name, cell }) => [name, cell(group, names)])),
  }))
  if (structured(io, options.output, shown)) return
  const rows = [...walkGroups(tree)].map(({ group, prefix }) => row(group, prefix, columns, names, containers))
  io.stdout.write(table([['NAME', ...columns.map(({ name }) => name)], ...rows]))
}

function row(
  group: Group,
  prefix: string,
  columns: readonly Column[],
  names: ReadonlyMap<number, string>,
  containers: ReadonlyMap<string, string>,
): string[] {
  const id = group.name.replace(/\.scope$/, '').replace(/^cri-containerd-/, '')
  return [`${prefix}${containers.get(id) ?? group.name}`, ...columns.map(({ cell }) => cell(group, names))]
}

/** Version 1 has a tree for each controller and none of the values shown here. */
async function versionTwo(cluster: Cluster): Promise<void> {
  try {
    for await (const _ of cluster.stream('machine.MachineService/Read', { path: `${root}/cgroup.controllers` }, { timeout: 30_000 }));
  } catch (error) {
    if (!failedWith(error, 'NotFound')) throw error
    throw new Error(
      'the node uses version 1 of control groups, which this command does not read: "talosctl stats" shows memory and CPU time of containers',
    )
  }
}

async function* archive(cluster: Cluster): AsyncGenerator<Uint8Array, void> {
  for await (const { bytes } of cluster.stream('machine.MachineService/Copy', { rootPath: root }, { timeout: 120_000 })) yield bytes
}

async function processNames(cluster: Cluster): Promise<Map<number, string>> {
  const messages = await cluster.ask('machine.MachineService/Processes', {})
  return new Map(messages.flatMap(({ processes }) => processes.map(({ pid, command }) => [pid, command] as const)))
}

/** Names of the containers that Kubernetes runs, by the numbers their groups are named after. */
async function containerNames(cluster: Cluster): Promise<Map<string, string>> {
  const messages = await cluster
    .ask('machine.MachineService/Containers', { namespace: 'k8s.io', driver: common.ContainerDriver.CRI })
    .catch(() => [])
  const all = messages.flatMap(({ containers }) => containers)
  return new Map(
    all.map(({ internalId, podId, name, id }) => [internalId, id === podId ? `${podId} (sandbox)` : `${podId}/${name}`] as const),
  )
}
