import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured, withNodes } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'
import { longTime } from '../../output/units.ts'

interface TimeOptions extends OutputFlags {
  check?: string
}

/** talosctl time */
export const time = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Show the clock of each node beside that of its time server.')
    .option('--check <server>', 'compare with this time server instead')
    .addOption(outputOption(messageSchema('time.TimeService/Time')))
    .action((options: TimeOptions) => runTime(io, cluster, options))

/** Prints both clocks of each node. */
export async function runTime(io: Io, cluster: Cluster, { check, output }: TimeOptions): Promise<void> {
  const messages = check
    ? await cluster.ask('time.TimeService/TimeCheck', { server: check })
    : await cluster.ask('time.TimeService/Time', {})
  const peer = await cluster.peer()
  if (structured(io, output, withNodes(cluster, peer, messages))) return
  const rows = messages.map((message) => [
    cluster.nodeOf(message, peer),
    message.server,
    longTime(message.localtime),
    longTime(message.remotetime),
  ])
  io.stdout.write(table([['NODE', 'NTP-SERVER', 'NODE-TIME', 'NTP-SERVER-TIME'], ...rows]))
}
