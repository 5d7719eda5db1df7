import { Command, Option } from 'commander'
import type { Cluster } from '../../cluster.ts'
import { LiveArgument } from '../../completion/live-argument.ts'
import { containers } from '../../completion/suggestions.ts'
import { type ContainerOptions, containerScope } from '../../container-scope.ts'
import type { Io } from '../../io.ts'

/** talosctl restart */
export const restart = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Restart a container of a node.')
    .addArgument(new LiveArgument('<id>', 'the container', containers))
    .option('-k, --kubernetes', 'one that Kubernetes runs instead of one of the system')
    .addOption(new Option('--use-cri').hideHelp())
    .action((id: string, options: ContainerOptions) => runRestart(io, cluster, id, options))

/** Restarts the container on every named node. */
export async function runRestart(_: Io, cluster: Cluster, id: string, options: ContainerOptions): Promise<void> {
  await cluster.named(`restarting "${id}"`)
  await cluster.ask('machine.MachineService/Restart', { ...containerScope(options), id }, { timeout: 60_000 })
}
