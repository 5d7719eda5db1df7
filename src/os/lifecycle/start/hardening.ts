import { type Parameter, parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import type { Machine } from '../../area.ts'
import type { Task } from '../sequencer.ts'

/** Required kernel parameters, after the Kernel Self Protection Project. */
const required: readonly [name: string, value: string][] = [
  ['slab_nomerge', ''],
  ['pti', 'on'],
]

/** The required parameters missing from a command line, in their notation. */
export function missingHardening(parameters: readonly Parameter[]): string[] {
  // If a parameter is repeated, the last value applies.
  return required
    .filter(([name, value]) => parameterValues(parameters, name).at(-1) !== value)
    .map(([name, value]) => (value ? `${name}=${value}` : name))
}

/** Refuses to boot a kernel without its hardening parameters, even if its command line was edited. */
export const enforceHardening = ({ kernel: { files } }: Pick<Machine, 'kernel'>): Task => ({
  name: 'enforceKSPPRequirements',
  run() {
    const missing = missingHardening(parseCommandLine(files.readText('/proc/cmdline')))
    if (missing.length === 0) return
    const named = missing.map((each) => `"${each}"`).join(' and ')
    throw new Error(
      `kernel parameter ${named} ${missing.length === 1 ? 'is' : 'are'} missing: the machine starts only with ${
        missing.length === 1 ? 'it' : 'them'
      } on the kernel command line`,
    )
  },
})
