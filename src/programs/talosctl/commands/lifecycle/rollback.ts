import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import { type Io, remark } from '../../io.ts'

/** talosctl rollback */
export const rollback = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Go back to the previous release of nodes; they restart with it, and keep it when they are as healthy as before.')
    .action(() => runRollback(io, cluster))

/** Rolls the named nodes back. */
export async function runRollback(io: Io, cluster: Cluster): Promise<void> {
  await cluster.named('rollback')
  const peer = await cluster.peer()
  for (const message of await cluster.ask('machine.MachineService/Rollback', {}, { timeout: 60_000 }))
    remark(io, `${cluster.nodeOf(message, peer)}: goes back to the release before\n`)
}
