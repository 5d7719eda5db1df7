import { Command } from 'commander'
import { ConfigError, formatIssue } from '../../../../document/config-error.ts'
import type { Mode } from '../../../../document/kind.ts'
import { ConfigContainer } from '../../../../os/config/container.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { readFileOrStdin } from '../../patches.ts'

/** The flags as commander leaves them. */
export interface ValidateOptions {
  config?: string
  mode: string
  strict?: boolean
}

const modes = ['metal', 'cloud', 'container']

/** talosctl validate */
export const validate = (io: Io): Command =>
  new Command()
    .description('Check a machine configuration for the machine it is meant for.')
    .option('-c, --config <file>', 'the configuration, "-" for standard input')
    .requiredOption('-m, --mode <mode>', `the machine: ${modes.join(', ')}`)
    .option('--strict', 'take warnings for errors')
    .action((options: ValidateOptions) => runValidate(io, options))

/** Prints what is wrong, or that nothing is. */
export async function runValidate(io: Io, { config: path, mode, strict }: ValidateOptions): Promise<void> {
  if (!modes.includes(mode)) throw new UsageError(`unknown mode "${mode}": there are ${modes.join(', ')}`)
  if (!path) throw new UsageError('name the configuration with --config')
  const config = ConfigContainer.parse(await readFileOrStdin(io, path, 'configuration'))
  const { errors, warnings } = config.validate(mode as Mode)
  const failing = strict ? [...errors, ...warnings] : errors
  if (!strict) for (const warning of warnings) io.stderr.write(`WARNING: ${formatIssue(warning)}\n`)
  if (failing.length) throw new ConfigError(failing)
  io.stdout.write(`${path} is valid for ${mode} mode\n`)
}
