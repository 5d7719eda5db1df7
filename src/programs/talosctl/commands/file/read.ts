import { Command } from 'commander'
import { writeBytes } from '../../action/byte-progress.ts'
import type { Cluster } from '../../cluster.ts'
import { LiveArgument } from '../../completion/live-argument.ts'
import { paths } from '../../completion/suggestions.ts'
import type { Io } from '../../io.ts'

/** talosctl read */
export const read = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Write a file of a node to standard output.')
    .addArgument(new LiveArgument('<path>', 'the file', paths))
    .action((path: string) => runRead(io, cluster, path))

/** Streams the file, no faster than it is taken. */
export async function runRead(io: Io, cluster: Cluster, path: string): Promise<void> {
  await cluster.single('read')
  await writeBytes(io, received(cluster, path), 'reading')
}

async function* received(cluster: Cluster, path: string): AsyncGenerator<Uint8Array, void> {
  for await (const { bytes } of cluster.stream('machine.MachineService/Read', { path })) yield bytes
}
