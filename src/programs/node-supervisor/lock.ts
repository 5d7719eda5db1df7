import { linkSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { failedWith } from '../../wire/errno.ts'
import { identify, isAlive, type ProcessIdentity } from './process-identity.ts'

/** Someone else holds the lock. */
export class LockedError extends Error {
  override name = 'LockedError'
  constructor(
    readonly file: string,
    readonly holder: ProcessIdentity,
  ) {
    super(`lock "${file}": held by process ${holder.pid}`)
  }
}

/** Takes a lock that is void once its holder is gone, however it went; returns how to give it back. */
export function lock(file: string): () => void {
  const self = identify(process.pid)
  if (!self) throw new Error(`lock "${file}": /proc is not mounted`)
  const mine = `${file}.${self.pid}`
  writeFileSync(mine, JSON.stringify(self), { mode: 0o600 })
  try {
    for (;;) {
      try {
        linkSync(mine, file)
        return () => unlinkIfThere(file)
      } catch (error) {
        if (!failedWith(error, 'EEXIST')) throw error
      }
      const holder = holderOf(file)
      if (holder && isAlive(holder)) throw new LockedError(file, holder)
      removeStale(file)
    }
  } finally {
    unlinkIfThere(mine)
  }
}

/**
 * Removes a lock whose holder is gone. Only who holds the lock on breaking it may do so, and looks again once it has that:
 * of two that see the same stale lock the second would else remove the first one's fresh one.
 */
function removeStale(file: string): void {
  let unlock: () => void
  try {
    unlock = lock(`${file}.break`)
  } catch (error) {
    if (!(error instanceof LockedError)) throw error
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1) // another one is at it, for some microseconds
    return
  }
  try {
    // One look at the file: a lock that its holder gave back meanwhile is not stale, and the next file there is another's.
    const found = contentIfThere(file)
    if (found !== undefined && !isAliveHolder(found)) unlinkIfThere(file)
  } finally {
    unlock()
  }
}

/** Who holds a lock; undefined when nobody does or the file makes no sense. */
export function holderOf(file: string): ProcessIdentity | undefined {
  try {
    return parseHolder(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

function parseHolder(content: string): ProcessIdentity | undefined {
  try {
    const { pid, start } = JSON.parse(content)
    return typeof pid === 'number' && typeof start === 'string' ? { pid, start } : undefined
  } catch {
    return undefined
  }
}

function isAliveHolder(content: string): boolean {
  const holder = parseHolder(content)
  return holder !== undefined && isAlive(holder)
}

function contentIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (!failedWith(error, 'ENOENT')) throw error
    return undefined
  }
}

/** Whether a live process holds a lock. */
export function isHeld(file: string): boolean {
  const holder = holderOf(file)
  return holder !== undefined && isAlive(holder)
}

function unlinkIfThere(file: string): void {
  try {
    unlinkSync(file)
  } catch (error) {
    if (!failedWith(error, 'ENOENT')) throw error
  }
}
