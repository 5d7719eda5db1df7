/** Runs the unit suite: `bun run unit`, with further arguments of `bun test`. */
import { runInParallel } from './support/parallel.ts'

process.exitCode = await runInParallel(process.argv.slice(2))
