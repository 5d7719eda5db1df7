/** All sources after STATE, in order. */
import { parseCommandLine } from '../../../wire/command-line.ts'
import type { Kernel } from '../../kernel.ts'
import { embedded } from './embedded.ts'
import { cmdlineEarly, cmdlineLate } from './inline.ts'
import { containerPlatform, type Environment, machinePlatform } from './platform.ts'
import type { Source } from './source.ts'

type Dependencies = Parameters<typeof machinePlatform>[0] & { kernel: { mode: Kernel['mode']; files: Pick<Kernel['files'], 'readText'> } }

/** A container has no kernel command line of its own; its host's does not apply. */
export function sourcesOf(dependencies: Dependencies, environment: Environment): Source[] {
  if (dependencies.kernel.mode === 'container') return environment.USERDATA ? [containerPlatform(environment)] : []
  const commandLine = dependencies.kernel.files.readText('/proc/cmdline')
  const parameters = parseCommandLine(commandLine)
  const platform = machinePlatform({ ...dependencies, commandLine }, parameters, environment)
  return [embedded(dependencies.kernel), cmdlineEarly(parameters), platform, cmdlineLate(parameters)]
}
