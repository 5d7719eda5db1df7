import { Command } from 'commander'
import type { machine } from '../../../../rpc/messages.ts'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured, withNodes } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'

/** talosctl mounts */
export const mounts = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Show the mounts of each node and how full they are.')
    .addOption(outputOption(messageSchema('machine.MachineService/Mounts')))
    .action((options: OutputFlags) => runMounts(io, cluster, options))

/** Prints every mount that has a size. */
export async function runMounts(io: Io, cluster: Cluster, options: OutputFlags): Promise<void> {
  const messages = await cluster.ask('machine.MachineService/Mounts', {})
  const peer = await cluster.peer()
  if (structured(io, options.output, withNodes(cluster, peer, messages))) return
  const rows = messages.flatMap((message) =>
    message.stats.filter(({ size }) => size > 0).map((stat) => [cluster.nodeOf(message, peer), ...columns(stat)]),
  )
  io.stdout.write(table([['NODE', 'FILESYSTEM', 'SIZE(GB)', 'USED(GB)', 'AVAILABLE(GB)', 'PERCENT USED', 'MOUNTED ON'], ...rows]))
}

function columns({ filesystem, size, available, mountedOn }: machine.MountStat): string[] {
  const gigabytes = (bytes: number) => (bytes * 1e-9).toFixed(2)
  const percent = 100 - 100 * (available / size)
  return [filesystem, gigabytes(size), gigabytes(size - available), gigabytes(available), `${percent.toFixed(2)}%`, mountedOn]
}
