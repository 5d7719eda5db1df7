import { Command, Option } from 'commander'
import type { Cluster } from '../../cluster.ts'
import { type ContainerOptions, containerScope, displayId } from '../../container-scope.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured, withNodes } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'

/** talosctl stats */
export const stats = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Show the memory and CPU time of the containers of each node.')
    .option('-k, --kubernetes', 'those that Kubernetes runs instead of those of the system')
    .addOption(new Option('--use-cri').hideHelp())
    .addOption(outputOption(messageSchema('machine.MachineService/Stats')))
    .action((options: ContainerOptions & OutputFlags) => runStats(io, cluster, options))

/** Prints memory in megabytes and CPU time in nanoseconds. */
export async function runStats(io: Io, cluster: Cluster, options: ContainerOptions & OutputFlags): Promise<void> {
  const messages = await cluster.ask('machine.MachineService/Stats', containerScope(options))
  const peer = await cluster.peer()
  if (structured(io, options.output, withNodes(cluster, peer, messages))) return
  const rows = messages.flatMap((message) =>
    message.stats
      .toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
      .map((one) => [cluster.nodeOf(message, peer), one.namespace, displayId(one), (one.memoryUsage * 1e-6).toFixed(2), one.cpuUsage]),
  )
  io.stdout.write(table([['NODE', 'NAMESPACE', 'ID', 'MEMORY(MB)', 'CPU'], ...rows]))
}
