import { Command } from 'commander'
import type { Cluster } from '../cluster.ts'
import type { Io } from '../io.ts'

/** talosctl read */
export const read = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Write a file of a node to standard output.')
    .argument('<path>', 'the file')
    .action((path: string) => runRead(io, cluster, path))

/** Streams the file, no faster than it is taken. */
export async function runRead(io: Io, cluster: Cluster, path: string): Promise<void> {
  await cluster.single('read')
  for await (const { bytes } of cluster.stream('machine.MachineService/Read', { path })) {
    io.stdout.write(bytes)
    await io.stdout.drained()
  }
}
