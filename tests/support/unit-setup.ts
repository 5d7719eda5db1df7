/**
 * Preloaded by the unit suite. Temporary files are kept in memory where the system has room there, since no test needs a disk. Properties
 * that name no number of runs are tried as often as FUZZ_RUNS scales the number of the library.
 */
import { accessSync, constants, statfsSync } from 'node:fs'
import fc from 'fast-check'
import { runs } from './runs.ts'

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

if (process.env.TMPDIR === undefined && hasRoom()) process.env.TMPDIR = memory
fc.configureGlobal({ ...fc.readConfigureGlobal(), numRuns: runs(100) })
