import { runProgram } from '../../supervise/run-program.ts'
import type { Machine } from '../area.ts'

/** Milliseconds: to create, check or repair a file system on a slow disk takes minutes. */
const timeout = 15 * 60_000

/** Runs a program for file systems and resolves to its output. Rejects with ProgramFailed. */
export const fileSystemProgram = (
  machine: Pick<Machine, 'spawn'>,
  argv: readonly string[],
  accept: readonly number[] = [],
): Promise<string> => runProgram(machine, argv, { timeout, accept })
