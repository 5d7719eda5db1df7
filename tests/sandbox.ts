/**
 * Runs whole machines over a simulated kernel: `bun run sandbox`, with further arguments of `bun test`. They are as free of the system
 * below as unit tests, but each starts all of `init`.
 */
import { join } from 'node:path'
import { Glob } from 'bun'
import { runInParallel } from './support/parallel.ts'

const files = [...new Glob('programs/init/*.sandbox.ts').scanSync(import.meta.dir)].sort()
process.exitCode = await runInParallel([...files.map((file) => `./${join('tests', file)}`), ...process.argv.slice(2)])
