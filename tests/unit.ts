/**
 * Runs the unit suite: `bun run unit`, with further arguments of `bun test`. Files share the modules of their worker, since loading
 * them for each file takes half as long as the tests. The timeout only ends tests that hang; it leaves room for a busy machine.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { ownSettings, unitSettings } from './support/unit-settings.ts'

/** One worker more than processors: tests of failures and time limits wait for a part of their time. */
const workers = availableParallelism() + 1

const args = process.argv.slice(2)
const own = args.includes(ownSettings)

const child = Bun.spawn(
  [
    process.execPath,
    'test',
    '--preload',
    './tests/support/unit-setup.ts',
    `--parallel=${workers}`,
    '--no-isolate',
    '--timeout',
    '60000',
    ...args.filter((arg) => arg !== ownSettings),
  ],
  { cwd: join(import.meta.dir, '..'), env: { ...(!own && unitSettings), ...process.env }, stdio: ['ignore', 'inherit', 'inherit'] },
)
process.exitCode = await child.exited
