/** Files of backups: written whole and durably, and hashed as they are read. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { Kernel } from '../../kernel.ts'

/** Writes chunks to a file that only root may read; returns their number of bytes. Removes the file again when that fails. */
export async function writeChunks(
  files: Pick<Kernel['files'], 'openWrite' | 'remove' | 'syncFile'>,
  path: string,
  chunks: AsyncIterable<Uint8Array>,
): Promise<number> {
  const file = files.openWrite(path, { mode: 0o600 })
  const failed = new Promise<never>((_, reject) => file.once('error', reject))
  failed.catch(() => undefined)
  let size = 0
  try {
    for await (const bytes of chunks) {
      size += bytes.length
      if (!file.write(bytes)) await Promise.race([once(file, 'drain'), failed])
    }
    file.end()
    await Promise.race([once(file, 'close'), failed])
    await files.syncFile(path)
    return size
  } catch (error) {
    file.destroy()
    await files.remove(path)
    throw error
  }
}

/** The bytes of a file in pieces; ends with the signal's reason. */
export async function* chunksOf(
  files: Pick<Kernel['files'], 'readSlice'>,
  path: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; ; ) {
    signal.throwIfAborted()
    const bytes = await files.readSlice(path, at, pieceLength)
    if (bytes.length === 0) return
    yield bytes
    at += bytes.length
  }
}

const pieceLength = 256 << 10

/** SHA-256 of a stream, in hexadecimal. */
export async function sha256Of(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256')
  for await (const bytes of chunks) hash.update(bytes)
  return hash.digest('hex')
}
