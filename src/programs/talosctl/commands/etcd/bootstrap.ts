import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import { snapshotChunks } from '../../etcd/snapshot.ts'
import type { Io } from '../../io.ts'

interface BootstrapOptions {
  recoverFrom?: string
  recoverSkipHashCheck?: boolean
}

/** talosctl bootstrap */
export const bootstrap = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Start etcd on the first control plane; once in the life of a cluster.')
    .option('--recover-from <snapshot>', 'fill etcd from this snapshot file')
    .option('--recover-skip-hash-check', 'take a snapshot without a hash, copied out of a data directory')
    .action((options: BootstrapOptions) => runBootstrap(io, cluster, options))

/** Bootstraps the one named node. */
export async function runBootstrap(io: Io, cluster: Cluster, options: BootstrapOptions): Promise<void> {
  await cluster.single('bootstrap')
  await cluster.named('bootstrap')
  if (options.recoverFrom) {
    let size = 0
    const path = options.recoverFrom
    const requests = async function* () {
      for await (const bytes of snapshotChunks(path)) {
        size += bytes.length
        yield { bytes }
      }
    }
    await cluster.upload('machine.MachineService/EtcdRecover', requests())
    io.stdout.write(`recovering from snapshot "${path}": ${size} bytes sent\n`)
  }
  const request = { recoverEtcd: options.recoverFrom !== undefined, recoverSkipHashCheck: options.recoverSkipHashCheck === true }
  await cluster.ask('machine.MachineService/Bootstrap', request, { timeout: 120_000 })
}
