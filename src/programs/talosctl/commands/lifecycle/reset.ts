import { Command, Option } from 'commander'
import { machine as wire } from '../../../../rpc/enums.ts'
import { actionOptions } from '../../action/flags.ts'
import { type ActionFlags, runAction } from '../../action/run.ts'
import type { Cluster } from '../../cluster.ts'
import { UsageError } from '../../failure.ts'
import { list } from '../../flags.ts'
import type { Io } from '../../io.ts'

interface ResetFlags extends ActionFlags {
  graceful: boolean
  insecure?: boolean
  reboot?: boolean
  systemLabelsToWipe?: string[]
  userDisksToWipe?: string[]
  wipeMode: 'all' | 'system-disk' | 'user-disks'
}

/** talosctl reset */
export const reset = (io: Io, cluster: Cluster) =>
  actionOptions(new Command().description('Wipe nodes: they leave the cluster and forget everything.'))
    .addOption(new Option('--graceful').default(true).hideHelp())
    .option('--no-graceful', 'wipe at once, without leaving etcd and draining first')
    .option('--insecure', 'reset a node in maintenance mode')
    .option('--reboot', 'start the node again instead of shutting it down')
    .option('--system-labels-to-wipe <label>', 'only these system partitions, for example STATE,EPHEMERAL', list())
    .option('--user-disks-to-wipe <disk>', 'these disks too', list())
    .addOption(new Option('--wipe-mode <mode>', 'what to wipe').choices(['all', 'system-disk', 'user-disks']).default('all'))
    .action((flags: ResetFlags) => runReset(io, cluster, flags))

/** Resets the named nodes and waits until they are gone, or back with nothing left. */
export async function runReset(io: Io, cluster: Cluster, flags: ResetFlags): Promise<void> {
  const labels = flags.systemLabelsToWipe ?? []
  const disks = flags.userDisksToWipe ?? []
  if (disks.length > 0 && flags.wipeMode === 'system-disk')
    throw new UsageError('--user-disks-to-wipe does not go with --wipe-mode=system-disk')
  if (labels.length > 0 && flags.wipeMode === 'user-disks')
    throw new UsageError('--system-labels-to-wipe does not go with --wipe-mode=user-disks')
  const { ALL, SYSTEM_DISK, USER_DISKS } = wire.ResetRequest.WipeMode
  const request = {
    graceful: flags.graceful,
    reboot: flags.reboot === true,
    systemPartitionsToWipe: labels.map((label) => ({ label, wipe: true })),
    userDisksToWipe: disks,
    mode: { all: ALL, 'system-disk': SYSTEM_DISK, 'user-disks': USER_DISKS }[flags.wipeMode],
  }
  if (!flags.insecure) await cluster.named('reset')
  const server = flags.insecure ? await cluster.insecure() : cluster
  try {
    await runAction(io, server, flags, flags.reboot && !forgets(labels) ? 'back' : 'gone', () =>
      server.ask('machine.MachineService/Reset', request, { timeout: 60_000 }),
    )
  } finally {
    if (server !== cluster) await server.close()
  }
}

/** Whether the node comes back as one that does not know our certificate. */
function forgets(labels: readonly string[]): boolean {
  return labels.length === 0 || labels.includes('STATE')
}
