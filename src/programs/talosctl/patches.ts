import { readFile } from 'node:fs/promises'
import { codeOf } from '../../wire/errno.ts'
import { UsageError } from './failure.ts'
import type { Io } from './io.ts'
import { readText } from './read-text.ts'

/** The texts of patches given as flags: each is the patch itself, or "@" and the file that holds it. */
export async function readPatches(given: readonly string[]): Promise<string[]> {
  return Promise.all(given.map((one) => (one.startsWith('@') ? readText(one.slice(1), 'patch') : one)))
}

/** The bytes of a file, or of standard input for "-". */
export async function readFileOrStdin(io: Io, path: string, what: string): Promise<Uint8Array> {
  if (path === '-') return io.readStdin()
  try {
    return await readFile(path)
  } catch (error) {
    throw new UsageError(`read ${what} "${path}": ${codeOf(error)}`)
  }
}
