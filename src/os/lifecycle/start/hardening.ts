import { type Parameter, parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import type { Machine } from '../../area.ts'
import type { Task } from '../sequencer.ts'

/** Kernel parameters without which no machine is started, after the Kernel Self Protection Project. */
const required: readonly [name: string, value: string][] = [
  ['slab_nomerge', ''],
  ['pti', 'on'],
]

/** The requirements that a command line does not meet, as they would be written. */
export function missingHardening(parameters: readonly Parameter[]): string[] {
  // Of a parameter that is given twice the last one counts.
  return required
    .filter(([name, value]) => parameterValues(parameters, name).at(-1) !== value)
    .map(([name, value]) => (value ? `${name}=${value}` : name))
}

/** A kernel that was started without its protection is refused, whoever edited its command line. */
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
