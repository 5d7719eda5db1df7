import { Command } from 'commander'
import { actionOptions } from '../../action/flags.ts'
import { type ActionFlags, runAction } from '../../action/run.ts'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'

interface ShutdownFlags extends ActionFlags {
  force?: boolean
}

/** talosctl shutdown */
export const shutdown = (io: Io, cluster: Cluster) =>
  actionOptions(new Command().description('Shut nodes down.'))
    .option('--force', 'without draining the Kubernetes node first')
    .action((flags: ShutdownFlags) => runShutdown(io, cluster, flags))

/** Shuts the named nodes down and waits until they are gone. */
export async function runShutdown(io: Io, cluster: Cluster, flags: ShutdownFlags): Promise<void> {
  await cluster.named('shutdown')
  const request = { force: flags.force === true }
  await runAction(io, cluster, flags, 'gone', () => cluster.ask('machine.MachineService/Shutdown', request))
}
