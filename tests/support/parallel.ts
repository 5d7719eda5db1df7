import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { ownSettings, unitSettings } from './unit-settings.ts'

/** One worker more than processors: tests of failures and time limits wait for a part of their time. */
const workers = availableParallelism() + 1

/**
 * Runs `bun test` on all processors, with further arguments of it; resolves to its exit code. Files share the modules of their worker,
 * since loading them for each file takes half as long as the tests. The timeout only ends tests that hang; it leaves room for a busy
 * machine.
 */
export function runInParallel(args: readonly string[]): Promise<number> {
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
    { cwd: join(import.meta.dir, '../..'), env: { ...(!own && unitSettings), ...process.env }, stdio: ['ignore', 'inherit', 'inherit'] },
  )
  return child.exited
}
