import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'
import { NodePaint } from '../../output/node-paint.ts'

interface DmesgOptions {
  follow?: boolean
  tail?: boolean
}

/** talosctl dmesg */
export const dmesg = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Show the kernel log of each node.')
    .option('-f, --follow', 'go on with new messages until interrupted')
    .option('--tail', 'only new messages, with --follow')
    .action((options: DmesgOptions) => runDmesg(io, cluster, options))

/** Prints every message with its node in front. */
export async function runDmesg(io: Io, cluster: Cluster, options: DmesgOptions): Promise<void> {
  const names = new NodePaint(io.stdout, (await cluster.nodes()).length > 1)
  const peer = await cluster.peer()
  const request = { follow: options.follow === true, tail: options.tail === true }
  for await (const data of cluster.stream('machine.MachineService/Dmesg', request)) {
    const text = Buffer.from(data.bytes).toString('utf8')
    io.stdout.write(`${names.paint(cluster.nodeOf(data, peer))}: ${text}${text.endsWith('\n') ? '' : '\n'}`)
    await io.stdout.drained()
  }
}
