/** Stretches of files of a release. */
import { type FileHandle, open, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Segment } from '../../../oci/image.ts'
import { codeOf } from '../../../wire/errno.ts'
import type { ReadAt } from '../../../wire/tar/read.ts'
import { FactoryError } from '../factory-error.ts'
import { fileNameOf, pathOf, type Release } from '../releases.ts'

/** Bytes of a file. */
export type Stretch = Extract<Segment, { file: string }>

/** The file of a release with the name `name` for amd64, open for as long as `use` runs. Throws FactoryError when the release does not have it. */
export async function withFile<T>(
  release: Release,
  file: string,
  use: (file: { path: string; size: number; read: ReadAt }) => Promise<T>,
): Promise<T> {
  const name = fileNameOf(release, file)
  const path = pathOf(release, file)
  const handle = await open(path).catch((error: unknown) => {
    throw new FactoryError(404, `the release has no "${name}" (${codeOf(error)}): make it with mkimage.sh`)
  })
  try {
    const { size } = await handle.stat()
    return await use({ path, size, read: readerOf(handle, name) })
  } finally {
    await handle.close()
  }
}

const readerOf =
  (file: FileHandle, name: string): ReadAt =>
  async (offset, length) => {
    const bytes = Buffer.alloc(length)
    for (let have = 0; have < length; ) {
      const { bytesRead } = await file.read(bytes, have, length - have, offset + have)
      if (bytesRead === 0) throw new FactoryError(503, `"${name}" of the release ends before byte ${offset + length}: retry`)
      have += bytesRead
    }
    return bytes
  }

/** A stretch of a file that is open for as long as `use` runs. */
export async function withStretch<T>({ file: path, offset: start }: Stretch, use: (read: ReadAt) => Promise<T>): Promise<T> {
  const file = await open(path)
  try {
    const read = readerOf(file, basename(path))
    return await use((offset, length) => read(start + offset, length))
  } finally {
    await file.close()
  }
}

const documentLimit = 64 << 10

/** A small text of a release. Throws FactoryError. */
export const readDocument = (release: Release, name: string, limit = documentLimit): Promise<string> =>
  withFile(release, name, async ({ size, read }) => {
    if (size > limit) throw new FactoryError(500, `"${name}" of the release has ${size} bytes, at most ${limit} are read`)
    return Buffer.from(await read(0, size)).toString()
  })

/** What changes when a file of the release is made again; empty when it is not there. */
export async function stampOf(path: string): Promise<string> {
  const stats = await stat(path).catch(() => undefined)
  return stats ? `${path} ${stats.size} ${stats.mtimeMs} ${stats.ino}` : ''
}
