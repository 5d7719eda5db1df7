import { linkSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
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
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const holder = holderOf(file)
      if (holder && isAlive(holder)) throw new LockedError(file, holder)
      unlinkIfThere(file)
    }
  } finally {
    unlinkIfThere(mine)
  }
}

/** Who holds a lock; undefined when nobody does or the file makes no sense. */
export function holderOf(file: string): ProcessIdentity | undefined {
  try {
    const { pid, start } = JSON.parse(readFileSync(file, 'utf8'))
    return typeof pid === 'number' && typeof start === 'string' ? { pid, start } : undefined
  } catch {
    return undefined
  }
}

/** Tells whether somebody alive holds a lock. */
export function isHeld(file: string): boolean {
  const holder = holderOf(file)
  return holder !== undefined && isAlive(holder)
}

function unlinkIfThere(file: string): void {
  try {
    unlinkSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
