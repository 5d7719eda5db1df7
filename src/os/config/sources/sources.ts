/** All places a configuration is looked for after STATE, in their order. */
import { parseCommandLine } from '../../../wire/command-line.ts'
import type { Kernel } from '../../kernel.ts'
import { embedded } from './embedded.ts'
import { cmdlineEarly, cmdlineLate } from './inline.ts'
import { containerPlatform, type Environment, machinePlatform } from './platform.ts'
import type { Source } from './source.ts'

type Parts = Parameters<typeof machinePlatform>[0] & { kernel: { mode: Kernel['mode']; files: Pick<Kernel['files'], 'readText'> } }

/** A container has no command line of its own: its host's says nothing about it. */
export function sourcesOf(parts: Parts, environment: Environment): Source[] {
  if (parts.kernel.mode === 'container') return environment.USERDATA ? [containerPlatform(environment)] : []
  const commandLine = parts.kernel.files.readText('/proc/cmdline')
  const parameters = parseCommandLine(commandLine)
  const platform = machinePlatform({ ...parts, commandLine }, parameters, environment)
  return [embedded(parts.kernel), cmdlineEarly(parameters), platform, cmdlineLate(parameters)]
}
