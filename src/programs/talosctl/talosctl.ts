/**
 * The operator's hand. Only the chosen command's module is evaluated: the table knows names and one line about each,
 * so that the shortest command pays for itself alone.
 */

import { Command, CommanderError, Option } from 'commander'
import { Cluster } from './cluster.ts'
import { commands, type Entry } from './command-table.ts'
import { describe, ExitCode } from './failure.ts'
import { list, spell } from './flags.ts'
import { type Io, processIo } from './io.ts'

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
