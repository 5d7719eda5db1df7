import { Command, Option } from 'commander'
import type { Cluster } from '../../cluster.ts'
import { type ContainerOptions, containerScope, displayId } from '../../container-scope.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured, withNodes } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'

/** talosctl containers */
export const containers = (io: Io, cluster: Cluster) =>
  new Command()
    .description('List the containers of each node.')
    .option('-k, --kubernetes', 'those that Kubernetes runs instead of those of the system')
    .addOption(new Option('--use-cri').hideHelp())
    .addOption(outputOption(messageSchema('machine.MachineService/Containers')))
    .action((options: ContainerOptions & OutputFlags) => runContainers(io, cluster, options))

/** Prints pods with their containers below them, or the system's containers. */
export async function runContainers(io: Io, cluster: Cluster, options: ContainerOptions & OutputFlags): Promise<void> {
  const messages = await cluster.ask('machine.MachineService/Containers', containerScope(options))
  const peer = await cluster.peer()
  if (structured(io, options.output, withNodes(cluster, peer, messages))) return
  const rows = messages.flatMap((message) =>
    message.containers
      .toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
      .map((one) => [cluster.nodeOf(message, peer), one.namespace, displayId(one), one.image, one.pid, one.status]),
  )
  io.stdout.write(table([['NODE', 'NAMESPACE', 'ID', 'IMAGE', 'PID', 'STATUS'], ...rows]))
}
