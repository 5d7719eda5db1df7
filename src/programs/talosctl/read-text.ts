import { readFile } from 'node:fs/promises'
import { codeOf, failedWith } from '../../wire/errno.ts'
import { UsageError } from './failure.ts'

/** The text of a file of this computer; throws a UsageError that names it, and `what` it is, if given. */
export async function readText(path: string, what?: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new UsageError(`read ${what ? `${what} ` : ''}"${path}": ${codeOf(error)}`)
  }
}

/** The same; undefined for a file that does not exist. */
export async function readTextIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (failedWith(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw new UsageError(`read "${path}": ${codeOf(error)}`)
  }
}
