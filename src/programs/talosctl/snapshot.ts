/** An etcd snapshot in a file: the database and behind it the SHA-256 of it, which is checked before the file gets its name. */

import { createHash } from 'node:crypto'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { UsageError } from './failure.ts'

const trailer = 32
const page = 512

/** What was saved. */
export interface Snapshot {
  /** Bytes in the file, trailer included. */
  readonly size: number
  readonly databaseSize: number
  /** SHA-256 of the database in hexadecimal. */
  readonly hash: string
}

/** Writes chunks to a file beside `path`, verifies them, and gives the file its name. Throws when the hash does not match. */
export async function saveSnapshot(chunks: AsyncIterable<{ bytes: Uint8Array }>, path: string): Promise<Snapshot> {
  const partial = `${path}.part`
  let file: FileHandle
  try {
    file = await open(partial, 'w', 0o600)
  } catch (error) {
    throw new UsageError(`create "${partial}": ${(error as NodeJS.ErrnoException).code}`)
  }
  try {
    const checked = await copyChecked(chunks, file)
    await file.sync()
    await file.close()
    await rename(partial, path)
    return checked
  } catch (error) {
    await file.close().catch(() => {})
    await rm(partial, { force: true })
    throw error
  }
}

async function copyChecked(chunks: AsyncIterable<{ bytes: Uint8Array }>, file: FileHandle): Promise<Snapshot> {
  const hash = createHash('sha256')
  let size = 0
  let held = Buffer.alloc(0)
  for await (const { bytes } of chunks) {
    await file.writeFile(bytes)
    size += bytes.length
    const seen = Buffer.concat([held, bytes])
    const keep = Math.max(0, seen.length - trailer)
    hash.update(seen.subarray(0, keep))
    held = Buffer.from(seen.subarray(keep))
  }
  if (size % page !== trailer) throw new Error(`snapshot of ${size} bytes has no hash at its end: it is not whole, try again`)
  const computed = hash.digest()
  if (!computed.equals(held))
    throw new Error(`snapshot is damaged: its hash is ${computed.toString('hex')}, it should be ${held.toString('hex')}; try again`)
  return { size, databaseSize: size - trailer, hash: computed.toString('hex') }
}

/** The chunks of a snapshot file, in pieces of 64 KiB. */
export async function* snapshotChunks(path: string): AsyncGenerator<Uint8Array, void> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (error) {
    throw new UsageError(`open "${path}": ${(error as NodeJS.ErrnoException).code}`)
  }
  try {
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(65_536), 0, 65_536)
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await file.close()
  }
}
