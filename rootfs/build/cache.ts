/**
 * What was built before, by the content of what it was built from: `parts/<name>-<key>/`, where the key is the hash of
 * everything that goes in. A part appears under its name only when it is whole.
 */
import { existsSync, mkdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The user's cache folder for this project. */
export const cacheFolder: string = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'ichor')

/** SHA-256 of bytes, text, or the JSON of a value, in hex. */
export function hashOf(value: Uint8Array | string | object): string {
  const bytes = typeof value === 'string' || value instanceof Uint8Array ? value : JSON.stringify(value)
  return new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
}

/** SHA-256 and size of a file. */
export async function hashFile(path: string): Promise<{ sha256: string; size: number }> {
  const hasher = new Bun.CryptoHasher('sha256')
  let size = 0
  for await (const chunk of Bun.file(path).stream()) {
    hasher.update(chunk)
    size += chunk.length
  }
  return { sha256: hasher.digest('hex'), size }
}

const day = 24 * 3600_000

/** Notes that something in the cache was used, to the day, so that it is kept. */
export function used(path: string): void {
  const now = Date.now()
  if (now - statSync(path).mtimeMs > day) utimesSync(path, now / 1000, now / 1000)
}

/** A part found in the cache or just built. */
export interface Cached {
  folder: string
  built: boolean
}

/** Finds the part made from `inputs`, or lets `make` fill its folder. */
export async function cached(name: string, inputs: object, make: (folder: string) => Promise<void>): Promise<Cached> {
  const folder = join(cacheFolder, 'parts', `${name}-${hashOf(inputs).slice(0, 20)}`)
  if (existsSync(folder)) {
    used(folder)
    return { folder, built: false }
  }
  const unfinished = `${folder}.${process.pid}`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { recursive: true })
  try {
    await make(unfinished)
    if (!existsSync(folder)) renameSync(unfinished, folder)
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
  return { folder, built: true }
}
