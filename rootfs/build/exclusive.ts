/** One build at a time does a piece of work; others wait for it and then find it done. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { LockedError, lock } from '../../src/programs/node-supervisor/lock.ts'
import { pause } from '../../src/timing/pause.ts'
import { cacheFolder } from './cache.ts'

/** Another build holds on to a piece of work for too long. */
export class WaitError extends Error {
  override name = 'WaitError'
}

const longest = 30 * 60_000

/** Runs `work` while no other build does work of that name. */
export async function exclusive<T>(name: string, work: () => Promise<T>): Promise<T> {
  const folder = join(cacheFolder, 'locks')
  const path = join(folder, name)
  mkdirSync(folder, { recursive: true })
  const since = performance.now()
  for (let waits = false; ; waits = true) {
    const unlock = taken(path)
    if (unlock)
      try {
        return await work()
      } finally {
        unlock()
      }
    if (!waits) console.error(`another build does "${name}" right now: waiting for it`)
    if (performance.now() - since > longest)
      throw new WaitError(`another build has held "${path}" for half an hour: end it, or delete that file`)
    await pause(300)
  }
}

function taken(path: string): (() => void) | undefined {
  try {
    return lock(path)
  } catch (error) {
    if (error instanceof LockedError) return undefined
    throw error
  }
}
