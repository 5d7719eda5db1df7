/** Files of backups: written whole and durably, and hashed as they are read. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { Kernel } from '../../kernel.ts'

type Writable = Pick<Kernel['files'], 'openWrite' | 'syncFile'>

/** Writes chunks to a file that only root may read; returns their number of bytes. Removes the file again when that fails. */
export async function writeChunks(
  files: Writable & Pick<Kernel['files'], 'remove'>,
  path: string,
  chunks: AsyncIterable<Uint8Array>,
): Promise<number> {
  const { file, write, close } = opened(files, path, 'w')
  let size = 0
  try {
    for await (const bytes of chunks) {
      size += bytes.length
      await write(bytes)
    }
    await close()
    await files.syncFile(path)
    return size
  } catch (error) {
    file.destroy()
    await files.remove(path)
    throw error
  }
}

/** Appends chunks to a file that only root may read. What has come is kept when that fails. */
export async function appendChunks(files: Writable, path: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const { write, close } = opened(files, path, 'a')
  try {
    for await (const bytes of chunks) await write(bytes)
  } finally {
    await close()
  }
  await files.syncFile(path)
}

function opened(files: Writable, path: string, flags: 'w' | 'a') {
  const file = files.openWrite(path, { mode: 0o600, flags })
  const failed = new Promise<never>((_, reject) => file.once('error', reject))
  failed.catch(() => undefined)
  return {
    file,
    async write(bytes: Uint8Array): Promise<void> {
      if (!file.write(bytes)) await Promise.race([once(file, 'drain'), failed])
    },
    async close(): Promise<void> {
      file.end()
      await Promise.race([once(file, 'close'), failed])
    },
  }
}

/** The bytes of a file in pieces, from an offset on; ends with the signal's reason. */
export async function* chunksOf(
  files: Pick<Kernel['files'], 'readSlice'>,
  path: string,
  signal: AbortSignal,
  from = 0,
): AsyncGenerator<Uint8Array, void> {
  for (let at = from; ; ) {
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
