import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'

/** talosctl help: `run` turns "help COMMAND" into "COMMAND --help" before any command is built; this is the help of help itself. */
export const help = (_: Io, __: Cluster) =>
  new Command().description('Show the help of a command, or the list of all commands.').argument('[command...]', 'the command')
