import { Command, Option } from 'commander'
import { machine as wire } from '../../../rpc/enums.ts'
import { actionOptions } from '../action/flags.ts'
import { type ActionFlags, runAction } from '../action/run.ts'
import type { Cluster } from '../cluster.ts'
import type { Io } from '../io.ts'

interface RebootFlags extends ActionFlags {
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
    .action((flags: RebootFlags) => runReboot(io, cluster, flags))

/** Reboots the named nodes and waits until they run again. */
export async function runReboot(io: Io, cluster: Cluster, flags: RebootFlags): Promise<void> {
  await cluster.named('reboot')
  const { DEFAULT, POWERCYCLE, FORCE } = wire.RebootRequest.Mode
  const mode = { default: DEFAULT, powercycle: POWERCYCLE, force: FORCE }[flags.mode]
  await runAction(io, cluster, flags, 'back', () => cluster.ask('machine.MachineService/Reboot', { mode }))
}
