/**
 * The operator's hand. Only the chosen command's module is evaluated: this file knows names and one line about each,
 * so that the shortest command pays for itself alone.
 */

import { Command, CommanderError, Option } from 'commander'
import { Cluster } from './cluster.ts'
import { describe, ExitCode } from './failure.ts'
import { list, spell } from './flags.ts'
import { type Io, processIo } from './io.ts'

/** Builds one top-level command; `cluster` connects on first use with the flags the command was given. */
export type CommandFactory = (io: Io, cluster: Cluster) => Command

interface Entry {
  readonly summary: string
  readonly aliases?: readonly string[]
  readonly hidden?: true
  /** The command talks to no cluster and takes none of the global flags. */
  readonly local?: true
  load(): Promise<CommandFactory>
}

/** Every top-level command by name; a command that is not here does not exist. */
export const commands: Record<string, Entry> = {
  'apply-config': {
    summary: 'Give nodes a machine configuration',
    aliases: ['apply'],
    load: async () => (await import('./commands/machineconfig/apply-config.ts')).applyConfig,
  },
  bootstrap: {
    summary: 'Start etcd on the first control plane',
    load: async () => (await import('./commands/etcd/bootstrap.ts')).bootstrap,
  },
  cgroups: { summary: 'Show control groups', aliases: ['cg'], load: async () => (await import('./commands/process/cgroups.ts')).cgroups },
  cluster: {
    summary: 'Create, show and destroy clusters on this machine',
    local: true,
    load: async () => (await import('./commands/cluster/cluster.ts')).cluster,
  },
  completion: {
    summary: 'Write the completion script of a shell',
    local: true,
    load: async () => (await import('./commands/client/completion.ts')).completion,
  },
  config: { summary: 'Show and change the client configuration', load: async () => (await import('./commands/config/config.ts')).config },
  'config-history': {
    summary: 'List, show, compare and restore the configurations that nodes were given',
    load: async () => (await import('./commands/machineconfig/config-history.ts')).configHistory,
  },
  containers: {
    summary: 'List containers',
    aliases: ['c'],
    load: async () => (await import('./commands/container/containers.ts')).containers,
  },
  copy: { summary: 'Copy files from a node', aliases: ['cp'], load: async () => (await import('./commands/file/copy.ts')).copy },
  crashdump: { summary: 'Gone', hidden: true, load: async () => (await import('./commands/client/deprecated.ts')).crashdump },
  dashboard: {
    summary: 'Watch nodes on the whole terminal',
    load: async () => (await import('./commands/diagnostics/dashboard.ts')).dashboard,
  },
  debug: { summary: 'Run a container that sees the whole node', load: async () => (await import('./commands/container/debug.ts')).debug },
  disks: { summary: 'Gone', hidden: true, load: async () => (await import('./commands/client/deprecated.ts')).disks },
  dmesg: { summary: 'Show the kernel log', load: async () => (await import('./commands/diagnostics/dmesg.ts')).dmesg },
  docs: {
    summary: 'Write reference pages',
    hidden: true,
    local: true,
    load: async () => (await import('./commands/client/docs.ts')).docs,
  },
  edit: { summary: 'Edit the machine configuration of nodes', load: async () => (await import('./commands/machineconfig/edit.ts')).edit },
  etcd: { summary: 'See to etcd', load: async () => (await import('./commands/etcd/etcd.ts')).etcd },
  events: { summary: 'Show what happens', load: async () => (await import('./commands/diagnostics/events.ts')).events },
  explain: {
    summary: 'Say why something is not there or not well',
    load: async () => (await import('./commands/resource/explain.ts')).explain,
  },
  gen: {
    summary: 'Make secrets, configurations, keys and certificates',
    local: true,
    load: async () => (await import('./commands/gen/gen.ts')).gen,
  },
  get: { summary: 'Show resources', aliases: ['g'], load: async () => (await import('./commands/resource/get.ts')).get },
  health: { summary: 'Wait until the cluster is healthy', load: async () => (await import('./commands/diagnostics/health.ts')).health },
  image: { summary: 'See to container images', aliases: ['images'], load: async () => (await import('./commands/image/image.ts')).image },
  inspect: { summary: 'Look into the machinery of a node', load: async () => (await import('./commands/resource/inspect.ts')).inspect },
  inject: {
    summary: 'Change Kubernetes manifests',
    local: true,
    load: async () => (await import('./commands/kubernetes/inject.ts')).inject,
  },
  install: { summary: 'Install the system on a disk', load: async () => (await import('./commands/lifecycle/install.ts')).install },
  help: { summary: 'Show the help of a command', local: true, load: async () => (await import('./commands/client/help.ts')).help },
  interfaces: { summary: 'Gone', hidden: true, load: async () => (await import('./commands/client/deprecated.ts')).interfaces },
  kubeconfig: { summary: 'Get the admin kubeconfig', load: async () => (await import('./commands/kubernetes/kubeconfig.ts')).kubeconfig },
  list: { summary: 'List files', aliases: ['ls'], load: async () => (await import('./commands/file/list.ts')).list },
  logs: { summary: 'Show the log of a service or container', load: async () => (await import('./commands/service/logs.ts')).logs },
  machineconfig: {
    summary: 'Make and change machine configurations',
    aliases: ['mc'],
    local: true,
    load: async () => (await import('./commands/machineconfig/machineconfig.ts')).machineconfig,
  },
  memory: { summary: 'Show memory', aliases: ['m', 'free'], load: async () => (await import('./commands/process/memory.ts')).memory },
  meta: { summary: 'Write and delete keys of the META partition', load: async () => (await import('./commands/disk/meta.ts')).meta },
  metrics: {
    summary: 'Show what nodes count, in Prometheus’ text format',
    load: async () => (await import('./commands/diagnostics/metrics.ts')).metrics,
  },
  mounts: { summary: 'List mounts', aliases: ['mount'], load: async () => (await import('./commands/disk/mounts.ts')).mounts },
  netstat: { summary: 'List sockets', aliases: ['ss'], load: async () => (await import('./commands/network/netstat.ts')).netstat },
  patch: {
    summary: 'Patch the machine configuration of nodes',
    load: async () => (await import('./commands/machineconfig/patch.ts')).patch,
  },
  pcap: {
    summary: 'Capture the packets of a link',
    aliases: ['tcpdump'],
    load: async () => (await import('./commands/network/pcap.ts')).pcap,
  },
  processes: {
    summary: 'List processes',
    aliases: ['p', 'ps'],
    load: async () => (await import('./commands/process/processes.ts')).processes,
  },
  read: {
    summary: 'Write a file of a node to standard output',
    aliases: ['cat'],
    load: async () => (await import('./commands/file/read.ts')).read,
  },
  reboot: { summary: 'Reboot nodes', load: async () => (await import('./commands/lifecycle/reboot.ts')).reboot },
  reset: { summary: 'Wipe nodes', load: async () => (await import('./commands/lifecycle/reset.ts')).reset },
  restart: { summary: 'Restart a container', load: async () => (await import('./commands/container/restart.ts')).restart },
  rollback: {
    summary: 'Go back to the release that nodes had before',
    load: async () => (await import('./commands/lifecycle/rollback.ts')).rollback,
  },
  routes: { summary: 'Gone', aliases: ['route'], hidden: true, load: async () => (await import('./commands/client/deprecated.ts')).routes },
  service: {
    summary: 'List, show, start, stop or restart services',
    aliases: ['services'],
    load: async () => (await import('./commands/service/service.ts')).service,
  },
  shutdown: { summary: 'Shut nodes down', load: async () => (await import('./commands/lifecycle/shutdown.ts')).shutdown },
  stats: { summary: 'Show memory and CPU time of containers', load: async () => (await import('./commands/container/stats.ts')).stats },
  support: {
    summary: 'Collect logs and state of nodes into a zip file',
    load: async () => (await import('./commands/diagnostics/support.ts')).support,
  },
  time: { summary: 'Show the clocks of nodes', load: async () => (await import('./commands/diagnostics/time.ts')).time },
  upgrade: { summary: 'Upgrade nodes to another release', load: async () => (await import('./commands/lifecycle/upgrade.ts')).upgrade },
  usage: { summary: 'Show how much directories hold', aliases: ['du'], load: async () => (await import('./commands/file/usage.ts')).usage },
  validate: {
    summary: 'Check a machine configuration',
    local: true,
    load: async () => (await import('./commands/machineconfig/validate.ts')).validate,
  },
  version: {
    summary: 'Show the versions of the client and of the nodes',
    load: async () => (await import('./commands/client/version.ts')).version,
  },
  wipe: { summary: 'Wipe disks', load: async () => (await import('./commands/disk/wipe.ts')).wipe },
}

/** The flags that every command talking to a cluster takes. */
export function globalOptions(): Option[] {
  const options = [
    new Option('--talosconfig <file>', 'client configuration (default: $TALOSCONFIG, then ~/.talos/config)'),
    new Option('--context <name>', 'context of the client configuration to use'),
    new Option('-n, --nodes <node>', 'nodes to ask, comma separated').argParser(list()),
    new Option('-e, --endpoints <endpoint>', 'endpoints to connect to instead of those of the context').argParser(list()),
    new Option('-c, --cluster <name>', 'cluster to reach through a proxy endpoint'),
    new Option('--siderov1-keys-dir <dir>', 'folder of SideroV1 keys (default: $SIDEROV1_KEYS_DIR, then ~/.talos/keys)').hideHelp(),
  ]
  return options.map((option) => option.helpGroup('Cluster flags:'))
}

/** Splits "[global flags] command rest" and puts the flags behind the command; without a command the name is empty. */
export function hoist(args: readonly string[]): { name: string; args: string[] } {
  const options = globalOptions()
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? ''
    if (arg === '--') break
    if (!arg.startsWith('-')) return { name: arg, args: [...args.slice(0, index), ...args.slice(index + 1)] }
    if (options.some(({ short, long, required }) => required && (arg === short || arg === long))) index++
  }
  return { name: '', args: [...args] }
}

/** The entry a name or alias means, with its proper name. */
export function find(name: string): [string, Entry] | undefined {
  return Object.entries(commands).find(([key, entry]) => key === name || entry.aliases?.includes(name))
}

/** One top-level command with everything below it, ready to parse. */
export async function build(name: string, entry: Entry, io: Io, cluster: Cluster): Promise<Command> {
  const command = (await entry.load())(io, cluster)
    .name(name)
    .aliases(entry.aliases ?? [])
  if (!command.summary()) command.summary(entry.summary)
  if (!entry.local) {
    // A command may give a global flag a second meaning of its own.
    const own = new Set(command.options.map(({ long }) => long))
    for (const option of globalOptions()) if (!own.has(option.long)) command.addOption(option)
    cluster.bind(() => withoutBare(command.opts()))
  }
  return command
}

/** A global flag that was given without its value means something else to its command. */
function withoutBare(flags: Record<string, unknown>): Record<string, unknown> {
  return flags.cluster === true ? { ...flags, cluster: undefined } : flags
}

/** The root of the tree: names and summaries only. */
function root(io: Io): Command {
  const program = new Command('talosctl').description('Operate machines and clusters through their API.').helpCommand(false)
  for (const [name, { summary, aliases, hidden }] of Object.entries(commands)) {
    program
      .command(name, { hidden: hidden === true })
      .summary(summary)
      .aliases(aliases ?? [])
      .allowUnknownOption()
      .allowExcessArguments()
  }
  return configure(program, io)
    .usage('[flags] <command>')
    .addHelpText('after', '\nUse "talosctl <command> --help" for more about a command.')
}

function configure(command: Command, io: Io): Command {
  const visit = (one: Command) => {
    one
      .exitOverride()
      .configureOutput({
        writeOut: (text) => io.stdout.write(text),
        writeErr: (text) => io.stderr.write(text),
        outputError: (text, write) => write(text.replace(/^error: /, '')),
        getOutHelpWidth: () => io.stdout.columns,
        getErrHelpWidth: () => io.stderr.columns,
        getOutHasColors: () => io.stdout.colors,
        getErrHasColors: () => io.stderr.colors,
      })
      .showHelpAfterError(`run "${path(one)} --help" for its usage`)
    one.commands.forEach(visit)
  }
  visit(command)
  return command
}

function path(command: Command): string {
  const names: string[] = []
  for (let one: Command | null = command; one; one = one.parent) names.unshift(one.name())
  return names.join(' ')
}

/** Runs one command line and resolves to its exit code. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  const cluster = new Cluster(io)
  try {
    if (args[0] === '__complete') {
      const { complete } = await import('./completion/complete.ts')
      io.stdout.write(await complete(io, args.slice(1)))
      return 0
    }
    let { name, args: rest } = hoist(args)
    if (name === 'help') {
      const hoisted = hoist(rest)
      name = hoisted.name
      rest = [...hoisted.args, '--help']
    }
    const found = find(name)
    if (!found) {
      await root(io).parseAsync(name ? [name, ...rest] : rest.includes('--help') || rest.includes('-h') ? ['--help'] : rest, {
        from: 'user',
      })
      return 0
    }
    const command = await build(...found, io, cluster)
    const program = configure(new Command('talosctl').helpCommand(false).addCommand(command), io)
    await program.parseAsync([found[0], ...spell(rest, command)], { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode
    if (error instanceof ExitCode) return error.code
    if (io.signal.aborted) return 130
    io.stderr.write(`${describe(error).replace(/\n*$/, '')}\n`)
    return 1
  } finally {
    await cluster.close()
    await io.stdout.drained()
  }
}

/** The program. */
export async function main(args: string[]): Promise<number> {
  return run(args, processIo())
}
