import { Command, Option } from 'commander'
import { duration } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption } from '../../output/output.ts'
import type { Schema } from '../../output/schema.ts'
import { create } from './create.ts'
import { type CommonFlags, common, forClusters, restartFlags } from './group-flags.ts'

/** Clusters on this machine. */
export const cluster = (io: Io): Command =>
  new Command('cluster')
    .description('Create, start, stop, show and destroy clusters on this machine')
    .addOption(new Option('--name <name>').hideHelp())
    .addOption(new Option('--state <folder>').hideHelp())
    .addCommand(create(io))
    .addCommand(start(io))
    .addCommand(stop(io))
    .addCommand(show(io))
    .addCommand(destroy(io))

interface StartFlags extends CommonFlags {
  wait: boolean
  waitTimeout: number
  restartWithHost?: boolean
}

function start(io: Io): Command {
  return restartFlags(common(new Command('start')))
    .description('Start a cluster again after a reboot of this machine, or all of them; nothing of it is lost')
    .option('--wait', 'wait until the cluster is healthy', true)
    .option('--no-wait', 'return when the nodes are starting')
    .option('--wait-timeout <duration>', 'how long to wait', duration, 20 * 60_000)
    .action(async (own: StartFlags, command: Command) => {
      const flags = forClusters(own, command, io)
      const { startClusters } = await import('../../cluster/start.ts')
      const isNamed = [command, command.parent].some((each) => each?.getOptionValueSource('name') === 'cli')
      await startClusters(io, {
        state: flags.state,
        name: isNamed ? flags.name : undefined,
        wait: flags.wait,
        waitTimeout: flags.waitTimeout,
        withHost: flags.restartWithHost,
      })
    })
}

function stop(io: Io): Command {
  return common(new Command('stop'))
    .description('Shut down the nodes of a cluster; "cluster start" starts them again')
    .action(async (own: CommonFlags, command: Command) => {
      const flags = forClusters(own, command, io)
      const { stopCluster } = await import('../../cluster/stop.ts')
      await stopCluster(io, flags.state, flags.name)
    })
}

const clusterSchema: Schema = {
  provisioner: 'string',
  name: 'string',
  network: { name: 'string', cidrs: ['string'], gateways: ['string'], mtu: 'number' },
  kubernetesEndpoint: 'string',
  // CPUs in thousandths, memory and disks in bytes.
  nodes: [
    { name: 'string', type: 'string', addresses: ['string'], milliCpus: 'number', memory: 'number', disk: 'number', state: 'string' },
  ],
}

function show(io: Io): Command {
  return common(new Command('show'))
    .description('Show a cluster and its nodes')
    .addOption(outputOption(clusterSchema))
    .action(async (own: CommonFlags & OutputFlags, command: Command) => {
      const flags = forClusters(own, command, io)
      const { showCluster } = await import('../../cluster/show.ts')
      await showCluster(io, flags)
    })
}

interface DestroyFlags extends CommonFlags {
  force?: boolean
  saveClusterLogsArchivePath?: string
  saveSupportArchivePath?: string
}

function destroy(io: Io): Command {
  return common(new Command('destroy'))
    .description('Destroy a cluster; nothing of it is left')
    .option('-f, --force', 'also what is left of a cluster that was never finished')
    .addOption(new Option('-y, --yes', 'do not ask: it never does').hideHelp())
    .option('--save-support-archive-path <file>', 'write logs and state of the nodes to a zip file first')
    .option('--save-cluster-logs-archive-path <file>', "write the nodes' consoles to a tar.gz first")
    .action(async (own: DestroyFlags, command: Command) => {
      const flags = forClusters(own, command, io)
      const { runDestroy } = await import('../../cluster/run-destroy.ts')
      await runDestroy(io, {
        state: flags.state,
        name: flags.name,
        force: flags.force === true,
        inEngine: flags.provisioner === 'docker',
        logs: flags.saveClusterLogsArchivePath,
        support: flags.saveSupportArchivePath,
      })
    })
}
