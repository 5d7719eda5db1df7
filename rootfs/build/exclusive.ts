/** One build at a time does a piece of work; others wait for it and then find it done. */
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
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
  const own = `${path}.${process.pid}`
  mkdirSync(folder, { recursive: true })
  writeFileSync(own, identity(process.pid))
  try {
    const since = performance.now()
    for (let said = false; !take(own, path); said = true) {
      if (!said) console.error(`another build does "${name}" right now: waiting for it`)
      if (performance.now() - since > longest)
        throw new WaitError(`another build has held "${path}" for half an hour: end it, or delete that file`)
      await Bun.sleep(300)
    }
    try {
      return await work()
    } finally {
      rmSync(path, { force: true })
    }
  } finally {
    rmSync(own, { force: true })
  }
}

function take(own: string, path: string): boolean {
  try {
    linkSync(own, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const holder = read(path)
  if (holder && identity(Number(holder.split(' ')[0])) !== holder) rmSync(path, { force: true })
  return false
}

/** A process by number and start time, so that a number used again is another process. */
function identity(pid: number): string {
  const stat = read(`/proc/${pid}/stat`)
  return `${pid} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''}`
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
