import { type Command, Option } from 'commander'
import { stateDirectory } from '../../cluster/state-paths.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'

const defaultName = 'talos-default'

/** The flags that all of these share. */
export interface CommonFlags {
  name: string
  state?: string
  provisioner: string
}

/** The flags of a command with those given before its name. */
export function withGroup<Flags extends CommonFlags>(flags: Flags, command: Command): Flags {
  return { ...flags, ...command.parent?.opts<Partial<CommonFlags>>() }
}

/** The same for a command on clusters that are there: the provisioner is checked, and the folder is that of this user. */
export function forClusters<Flags extends CommonFlags>(flags: Flags, command: Command, io: Io): Flags & { state: string } {
  const all = withGroup(flags, command)
  checkProvisioner(all.provisioner)
  return { ...all, state: stateDirectory(all.state, io.env) }
}

/** A command on a cluster. */
export function common(command: Command): Command {
  return command
    .addOption(new Option('--name <name>', 'name of the cluster').default(defaultName))
    .addOption(new Option('--state <folder>', 'folder that clusters are kept in (default: ~/.talos/clusters)'))
    .addOption(new Option('--provisioner <kind>', 'how nodes are made: container, qemu or docker').default('container'))
}

/** Whether the host starts the cluster when it boots; undefined leaves that as it is. */
export function restartFlags(command: Command): Command {
  return command
    .option('--restart-with-host', 'install a systemd unit that starts the cluster when this machine boots')
    .option('--no-restart-with-host', 'remove that unit')
}

/** Refuses ways of making nodes that are not here. */
export function checkProvisioner(kind: string): void {
  if (['container', 'qemu', 'docker'].includes(kind)) return
  throw new UsageError(`there is no provisioner "${kind}": say "container", "qemu" or "docker", or leave it out`)
}
