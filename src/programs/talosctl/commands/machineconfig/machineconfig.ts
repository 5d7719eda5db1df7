import { Command } from 'commander'
import { ConfigContainer } from '../../../../os/config/container.ts'
import { UsageError } from '../../failure.ts'
import { array } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { writeNew } from '../../new-files.ts'
import { readFileOrStdin, readPatches } from '../../patches.ts'
import { genConfig } from '../gen/config.ts'
import { addConfigFlags } from '../gen/gen.ts'

/** talosctl machineconfig */
export function machineconfig(io: Io): Command {
  const group = new Command().description('Make and change machine configurations.')
  addConfigFlags(group.command('gen <cluster-name> <cluster-endpoint>').summary('Make the configurations of a cluster'))
    .option('-f, --force', 'overwrite files that are there')
    .action((name: string, endpoint: string, options) => genConfig(io, options, name, endpoint, options))
  group
    .command('patch <machineconfig-file>')
    .summary('Patch a machine configuration')
    .description('Patch a machine configuration, "-" for standard input. Comments and order stay as they are.')
    .option('-p, --patch <patch>', 'patch to apply, "@file" or the text itself; may be repeated', array())
    .option('-o, --output <file>', 'where to write the result; standard output if not given')
    .action((path: string, options: PatchOptions) => runPatch(io, path, options))
  group
    .command('diff <from> <to>')
    .summary('Write the patch between two machine configurations')
    .description('Write the patch that makes the first configuration into the second, "-" for standard input.')
    .action((from: string, to: string) => runDiff(io, from, to))
  return group
}

/** Writes the patch from one configuration to another; nothing when they mean the same. */
export async function runDiff(io: Io, from: string, to: string): Promise<void> {
  const [before, after] = [await readFileOrStdin(io, from, 'configuration'), await readFileOrStdin(io, to, 'configuration')]
  io.stdout.write(ConfigContainer.parse(before).difference(ConfigContainer.parse(after)))
}

/** The flags of `machineconfig patch`. */
export interface PatchOptions {
  patch?: string[]
  output?: string
}

/** Applies patches in order and writes what came of it. */
export async function runPatch(io: Io, path: string, { patch = [], output }: PatchOptions): Promise<void> {
  if (patch.length === 0) throw new UsageError('name the patch with --patch')
  const config = ConfigContainer.parse(await readFileOrStdin(io, path, 'configuration'))
  const text = config.patch(...(await readPatches(patch))).toString()
  if (output) await writeNew([{ path: output, content: text }], true)
  else io.stdout.write(text)
}
