/**
 * An archive laid out below a folder. Nothing is ever written outside of it: names are taken apart, links are made
 * after all files, and the folders on the way must not be links that lead out.
 */

import { chmod, link, lutimes, mkdir, open, realpath, symlink, utimes } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { failedWith } from '../../../wire/errno.ts'
import { TarError } from '../../../wire/tar/format.ts'
import { type TarEntry, tarEntries } from '../../../wire/tar/read.ts'

/** What was laid out. */
export interface Extracted {
  readonly files: number
  readonly bytes: number
  /** Entries that are neither files, folders nor links. */
  readonly skipped: readonly string[]
}

/** Lays the archive out below `folder`, which is made when it is not there; modes and times are those of the archive. */
export async function extract(chunks: AsyncIterable<Uint8Array>, folder: string, progress?: (bytes: number) => void): Promise<Extracted> {
  await mkdir(folder, { recursive: true })
  const root = await realpath(folder)
  const after: (() => Promise<void>)[] = []
  const folders: TarEntry[] = []
  const skipped: string[] = []
  let files = 0
  let bytes = 0
  for await (const entry of tarEntries(chunks)) {
    const path = join(root, ...parts(entry.name))
    if (entry.type === 'directory') {
      await within(root, path, async () => void (await mkdir(path, { recursive: true })))
      folders.push(entry)
    } else if (entry.type === 'file') {
      await within(root, path, () =>
        writeEntry(path, entry, (count) => {
          bytes += count
          progress?.(bytes)
        }),
      )
      files++
    } else if (entry.type === 'symlink') {
      after.push(() => within(root, path, () => fresh(path, () => symlink(entry.target, path))))
      after.push(() => lutimes(path, entry.modified, entry.modified))
    } else if (entry.type === 'hardlink') {
      const source = join(root, ...parts(entry.target))
      after.push(() => within(root, path, () => fresh(path, () => link(source, path))))
    } else skipped.push(entry.name)
  }
  for (const act of after) await act()
  for (const entry of folders.toReversed()) {
    const path = join(root, ...parts(entry.name))
    await chmod(path, (entry.mode & 0o777) | 0o700)
    await utimes(path, entry.modified, entry.modified)
  }
  return { files, bytes, skipped }
}

function parts(name: string): string[] {
  const steps = name.split('/').filter((step) => step !== '' && step !== '.')
  if (steps.includes('..') || name.includes('\0')) throw new TarError(`tar entry "${name}" leads out of the folder`)
  return steps
}

async function within(root: string, path: string, act: () => Promise<void>): Promise<void> {
  if (path === root) return
  await mkdir(dirname(path), { recursive: true })
  const parent = await realpath(dirname(path))
  if (parent !== root && !parent.startsWith(root + sep)) throw new TarError(`"${dirname(path)}" is a link that leads out of "${root}"`)
  await act()
}

async function writeEntry(path: string, entry: TarEntry, wrote: (bytes: number) => void): Promise<void> {
  const file = await fresh(path, () => open(path, 'wx', entry.mode & 0o777))
  try {
    for await (const chunk of entry.content) {
      await file.writeFile(chunk)
      wrote(chunk.length)
    }
    await file.chmod(entry.mode & 0o777)
    await file.utimes(entry.modified, entry.modified)
  } finally {
    await file.close()
  }
}

/** Makes what was not there; what is there may be all that is left of something, and is never overwritten. */
async function fresh<T>(path: string, make: () => Promise<T>): Promise<T> {
  try {
    return await make()
  } catch (error) {
    if (!failedWith(error, 'EEXIST')) throw error
    throw new TarError(`"${path}" is there already: remove it, or copy into an empty folder`)
  }
}
