import { accessSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ownSettings, unitSettings } from './unit-settings.ts'

/** One worker more than processors: tests of failures and time limits wait for a part of their time. */
const workers = availableParallelism() + 1

const memory = '/dev/shm'
const needed = 1 << 30

function hasRoom(): boolean {
  try {
    accessSync(memory, constants.W_OK)
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= needed
  } catch {
    return false
  }
}

/** Where temporary files are kept: in memory where the system has room there, since no test needs a disk. */
const temporaryFolder = (): string => mkdtempSync(join(process.env.TMPDIR === undefined && hasRoom() ? memory : tmpdir(), 'ichor-unit-'))

/**
 * Runs `bun test` on all processors, with further arguments of it; resolves to its exit code. Files share the modules of their worker,
 * since loading them for each file takes half as long as the tests. The timeout only ends tests that hang; it leaves room for a busy
 * machine.
 */
export async function runInParallel(args: readonly string[]): Promise<number> {
  const temporary = temporaryFolder()
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
    {
      cwd: join(import.meta.dir, '../..'),
      env: { ...(!own && unitSettings), ...process.env, TMPDIR: temporary },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  )
  try {
    return await child.exited
  } finally {
    // Tests that were ended in the middle leave what they made.
    rmSync(temporary, { recursive: true, force: true })
  }
}
