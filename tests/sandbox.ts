/**
 * Runs whole machines and daemons over a simulated kernel and sockets: `bun run sandbox`, with further arguments of `bun test`. They are
 * as free of the system below as unit tests, but each starts all of `init`, or a daemon of it.
 */
import { join } from 'node:path'
import { Glob } from 'bun'
import { runInParallel } from './support/parallel.ts'

const files = [...new Glob('programs/*/*.sandbox.ts').scanSync(import.meta.dir)].sort()
process.exitCode = await runInParallel([...files.map((file) => `./${join('tests', file)}`), ...process.argv.slice(2)])
