/** Preloaded by the unit suite: temporary files are kept in memory where the system has room there, since no test needs a disk. */
import { accessSync, constants, statfsSync } from 'node:fs'

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
