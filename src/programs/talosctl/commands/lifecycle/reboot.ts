import { Command, Option } from 'commander'
import { machine as wire } from '../../../../rpc/enums.ts'
import { actionOptions } from '../../action/flags.ts'
import { type ActionFlags, runAction } from '../../action/run.ts'
import type { Cluster } from '../../cluster.ts'
import { UsageError } from '../../failure.ts'
import { duration } from '../../flags.ts'
import type { Io } from '../../io.ts'

interface RebootFlags extends ActionFlags {
  drain?: boolean
  drainTimeout: number
  drainForce?: boolean
  mode: 'default' | 'powercycle' | 'force'
}

/** talosctl reboot */
export const reboot = (io: Io, cluster: Cluster) =>
  actionOptions(new Command().description('Reboot nodes.'))
    .addOption(
      new Option('-m, --mode <mode>', 'default is by kexec, powercycle through the firmware, force without stopping services')
        .choices(['default', 'powercycle', 'force'])
        .default('default'),
    )
    .option('--drain', 'first take the Kubernetes node out of use, and let it back in afterwards')
    .option('--drain-timeout <duration>', 'how long pods may take to leave', duration, 5 * 60_000)
    .option('--drain-force', 'also when pods have not left in time')
    .action((flags: RebootFlags) => runReboot(io, cluster, flags))

/** Reboots the named nodes and waits until they run again. */
export async function runReboot(io: Io, cluster: Cluster, flags: RebootFlags): Promise<void> {
  if (flags.drainForce && !flags.drain) throw new UsageError('--drain-force goes with --drain')
  const nodes = await cluster.named('reboot')
  const { DEFAULT, POWERCYCLE, FORCE } = wire.RebootRequest.Mode
  const mode = { default: DEFAULT, powercycle: POWERCYCLE, force: FORCE }[flags.mode]
  const undrain = flags.drain ? await drained(io, cluster, nodes, flags) : undefined
  await runAction(io, cluster, flags, 'back', () => cluster.ask('machine.MachineService/Reboot', { mode }))
  if (flags.wait) await undrain?.()
  else if (undrain) io.stderr.write('the nodes stay cordoned: "kubectl uncordon" lets pods come again\n')
}

async function drained(io: Io, cluster: Cluster, nodes: readonly string[], flags: RebootFlags): Promise<() => Promise<void>> {
  const { drainNodes } = await import('../../action/drain.ts')
  return drainNodes(io, cluster, nodes, { timeout: flags.drainTimeout, progress: flags.progress, force: flags.drainForce })
}
