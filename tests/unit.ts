/**
 * Runs the unit suite: `bun run unit`, with further arguments of `bun test`. Files share the modules of their worker, since loading
 * them for each file takes half as long as the tests. The timeout only ends tests that hang; it leaves room for a busy machine.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

/**
 * Settings of the runtime that suit processes of half a minute: code that the last compiler tier makes pays back later, and memory that
 * is given back to the system is needed again soon.
 */
const settings = { BUN_JSC_useFTLJIT: '0', MIMALLOC_PURGE_DELAY: '-1' }

/** One worker more than processors: tests of failures and time limits wait for a part of their time. */
const workers = availableParallelism() + 1

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
    ...process.argv.slice(2),
  ],
  { cwd: join(import.meta.dir, '..'), env: { ...settings, ...process.env }, stdio: ['ignore', 'inherit', 'inherit'] },
)
process.exitCode = await child.exited
