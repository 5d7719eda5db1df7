/** Stretches of files of a release. */
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../../wire/errno.ts'
import type { ReadAt } from '../../../wire/tar/read.ts'
import { FactoryError } from '../factory-error.ts'

/** A file that is open for as long as `use` runs. Throws FactoryError when the release does not have it. */
export async function withFile<T>(
  folder: string,
  name: string,
  use: (file: { path: string; size: number; read: ReadAt }) => Promise<T>,
): Promise<T> {
  const path = join(folder, name)
  const file = await open(path).catch((error: unknown) => {
    throw new FactoryError(404, `the release has no "${name}" (${codeOf(error)}): make it with mkimage.sh`)
  })
  try {
    const { size } = await file.stat()
    const read: ReadAt = async (offset, length) => {
      const bytes = Buffer.alloc(length)
      for (let have = 0; have < length; ) {
        const { bytesRead } = await file.read(bytes, have, length - have, offset + have)
        if (bytesRead === 0) throw new FactoryError(503, `"${name}" of the release ends before byte ${offset + length}: retry`)
        have += bytesRead
      }
      return bytes
    }
    return await use({ path, size, read })
  } finally {
    await file.close()
  }
}

const documentLimit = 64 << 10

/** A small text of a release. Throws FactoryError. */
export const readDocument = (folder: string, name: string, limit = documentLimit): Promise<string> =>
  withFile(folder, name, async ({ size, read }) => {
    if (size > limit) throw new FactoryError(500, `"${name}" of the release has ${size} bytes, at most ${limit} are read`)
    return Buffer.from(await read(0, size)).toString()
  })

/** What changes when a file of the release is made again; empty when it is not there. */
export async function stampOf(path: string): Promise<string> {
  const stats = await stat(path).catch(() => undefined)
  return stats ? `${path} ${stats.size} ${stats.mtimeMs} ${stats.ino}` : ''
}
