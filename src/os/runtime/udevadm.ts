import { runProgram } from '../../supervise/run-program.ts'
import type { Spawn } from '../../supervise/spawn.ts'

/** Milliseconds; `settle` has a shorter limit of its own. */
const timeout = 120_000

/** Runs udevadm. Rejects with ProgramFailed. */
export async function udevadm(spawn: Spawn, question: readonly string[], signal: AbortSignal): Promise<void> {
  await runProgram({ spawn }, ['/usr/bin/udevadm', ...question], { timeout, signal, purpose: `udevadm ${question[0]}` })
}
