import { Command, Option } from 'commander'
import { stateDirectory } from '../../cluster/state-paths.ts'
import type { Io } from '../../io.ts'
import { create } from './create.ts'
import { type CommonFlags, checkProvisioner, common, withGroup } from './group-flags.ts'

/** Clusters on this machine. */
export const cluster = (io: Io): Command =>
  new Command('cluster')
    .description('Create, show and destroy clusters on this machine')
    .addOption(new Option('--name <name>').hideHelp())
    .addOption(new Option('--state <folder>').hideHelp())
    .addCommand(create(io))
    .addCommand(show(io))
    .addCommand(destroy(io))

function show(io: Io): Command {
  return common(new Command('show'))
    .description('Show a cluster and its nodes')
    .action(async (own: CommonFlags, command: Command) => {
      const flags = withGroup(own, command)
      checkProvisioner(flags.provisioner)
      const { showCluster } = await import('../../cluster/show.ts')
      io.stdout.write(showCluster(stateDirectory(flags.state, io.env), flags.name))
    })
}

function destroy(io: Io): Command {
  return common(new Command('destroy'))
    .description('Destroy a cluster; nothing of it is left')
    .option('-f, --force', 'also what is left of a cluster that was never finished')
    .addOption(new Option('-y, --yes', 'do not ask: it never does').hideHelp())
    .option('--save-cluster-logs-archive-path <file>', "write the nodes' consoles to a tar.gz first")
    .action(async (own: CommonFlags & { force?: boolean; saveClusterLogsArchivePath?: string }, command: Command) => {
      const flags = withGroup(own, command)
      checkProvisioner(flags.provisioner)
      const { runDestroy } = await import('../../cluster/run-destroy.ts')
      await runDestroy(io, {
        state: stateDirectory(flags.state, io.env),
        name: flags.name,
        force: flags.force === true,
        logs: flags.saveClusterLogsArchivePath,
      })
    })
}
