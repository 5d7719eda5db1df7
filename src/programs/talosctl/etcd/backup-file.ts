import { open, rename, rm } from 'node:fs/promises'
import { codeOf } from '../../../wire/errno.ts'
import { UsageError } from '../failure.ts'

/** Writes chunks to a file beside `path`, which gets its name when it is whole. Returns the number of bytes. */
export async function saveBackup(chunks: AsyncIterable<Uint8Array>, path: string): Promise<number> {
  const partial = `${path}.part`
  const file = await open(partial, 'w', 0o600).catch((error: unknown) => {
    throw new UsageError(`create "${partial}": ${codeOf(error)}`)
  })
  let size = 0
  try {
    for await (const bytes of chunks) {
      await file.writeFile(bytes)
      size += bytes.length
    }
    await file.sync()
    await file.close()
    await rename(partial, path)
    return size
  } catch (error) {
    await file.close().catch(() => {}) // it may be closed
    await rm(partial, { force: true })
    throw error
  }
}
