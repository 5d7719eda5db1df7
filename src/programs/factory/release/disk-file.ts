/** A file as a disk, for writers of file systems. */
import { type FileHandle, open } from 'node:fs/promises'
import type { BlockAccess } from '../../../wire/fat/block-access.ts'

/** Makes an empty file of a size, lets `use` write to it, and closes it. Unwritten stretches take no room. */
export async function withDiskFile<T>(path: string, size: number, use: (disk: BlockAccess) => Promise<T>): Promise<T> {
  const file = await open(path, 'w+', 0o644)
  try {
    await file.truncate(size)
    return await use(diskOn(file, 0, size))
  } finally {
    await file.close()
  }
}

/** A stretch of an open file. */
export function diskOn(file: FileHandle, start: number, size: number): BlockAccess {
  const within = (offset: number, length: number) => {
    if (offset < 0 || offset + length > size) throw new RangeError(`${length} bytes at ${offset} lie outside of ${size}`)
  }
  return {
    size,
    async read(offset, length) {
      within(offset, length)
      const bytes = new Uint8Array(length)
      for (let have = 0; have < length; ) {
        const { bytesRead } = await file.read(bytes, have, length - have, start + offset + have)
        if (bytesRead === 0) throw new RangeError(`the file ends before byte ${start + offset + length}`)
        have += bytesRead
      }
      return bytes
    },
    async write(offset, bytes) {
      within(offset, bytes.length)
      for (let have = 0; have < bytes.length; ) {
        const { bytesWritten } = await file.write(bytes, have, bytes.length - have, start + offset + have)
        have += bytesWritten
      }
    },
    flush: async () => {}, // the image counts once it is whole
  }
}
