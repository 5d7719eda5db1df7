import { readFile } from 'node:fs/promises'
import { UsageError } from './failure.ts'
import type { Io } from './io.ts'

/** The texts of patches given as flags: each is the patch itself, or "@" and the file that holds it. */
export async function readPatches(given: readonly string[]): Promise<string[]> {
  return Promise.all(given.map((one) => (one.startsWith('@') ? readText(one.slice(1), 'patch') : one)))
}

/** The text of a file; throws a UsageError that names it. */
export async function readText(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new UsageError(`read ${what} "${path}": ${(error as NodeJS.ErrnoException).code}`)
  }
}

/** The bytes of a file, or of standard input for "-". */
export async function readFileOrStdin(io: Io, path: string, what: string): Promise<Uint8Array> {
  if (path === '-') return io.readStdin()
  try {
    return await readFile(path)
  } catch (error) {
    throw new UsageError(`read ${what} "${path}": ${(error as NodeJS.ErrnoException).code}`)
  }
}
