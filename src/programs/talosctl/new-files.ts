/** Files that a command creates: existing ones are overwritten only with --force; secrets are readable only by their owner. */

import { access, mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf } from '../../wire/errno.ts'
import { UsageError } from './failure.ts'

/** One file to be made. */
export interface NewFile {
  path: string
  content: string | Uint8Array
  /** Default: 0600. */
  mode?: number
}

/** Refuses files that exist, without --force. Called before the work whose results they would hold. */
export async function refuseExisting(paths: readonly string[], force = false): Promise<void> {
  for (const path of force ? [] : paths) {
    const there = await access(path).then(
      () => true,
      () => false,
    )
    if (there) throw new UsageError(`file "${path}" is there already: use --force to overwrite it`)
  }
}

/** Writes all of them, or refuses before the first when one is there already. */
export async function writeNew(files: readonly NewFile[], force = false): Promise<void> {
  await refuseExisting(
    files.map(({ path }) => path),
    force,
  )
  for (const { path, content, mode = 0o600 } of files) {
    try {
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, content, { mode, flag: force ? 'w' : 'wx' })
    } catch (error) {
      throw new UsageError(`write "${path}": ${codeOf(error)}`)
    }
  }
}
