/** An etcd snapshot in a file: the database and behind it the SHA-256 of it. Both are checked before the file gets its name. */

import { readSync } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { DecodeError } from '../../../wire/decode-error.ts'
import { codeOf } from '../../../wire/errno.ts'
import { SnapshotHash } from '../../../wire/etcd/snapshot-hash.ts'
import { type SnapshotInfo, snapshotInfo } from '../../../wire/etcd/snapshot-info.ts'
import { UsageError } from '../failure.ts'

/** What was saved. */
export interface Snapshot {
  /** Bytes in the file, trailer included. */
  readonly bytes: number
  readonly info: SnapshotInfo
}

/**
 * Writes chunks to a file beside `path`, verifies them, and gives the file its name. Throws when they are damaged. `hashless` also
 * takes a database that has no hash behind it, as etcd keeps it in its data folder.
 */
export async function saveSnapshot(
  chunks: AsyncIterable<{ bytes: Uint8Array }>,
  path: string,
  { hashless = false } = {},
): Promise<Snapshot> {
  const partial = `${path}.part`
  let file: FileHandle
  try {
    file = await open(partial, 'w+', 0o600)
  } catch (error) {
    throw new UsageError(`create "${partial}": ${codeOf(error)}`)
  }
  try {
    const bytes = await copyChecked(chunks, file, hashless)
    const info = infoOf(file)
    await file.sync()
    await file.close()
    await rename(partial, path)
    return { bytes, info }
  } catch (error) {
    await file.close().catch(() => {})
    await rm(partial, { force: true })
    throw error
  }
}

/** A file without the hash that ends a snapshot. */
export class HashMissing extends Error {
  override name = 'HashMissing'

  constructor(bytes: number) {
    super(`snapshot of ${bytes} bytes has no hash at its end: it is not whole, try again`)
  }
}

async function copyChecked(chunks: AsyncIterable<{ bytes: Uint8Array }>, file: FileHandle, hashless: boolean): Promise<number> {
  const hash = new SnapshotHash()
  for await (const { bytes } of chunks) {
    await file.writeFile(bytes)
    hash.update(bytes)
  }
  const result = hash.finish()
  if (result.state === 'missing' && !hashless) throw new HashMissing(result.bytes)
  if (result.state === 'different')
    throw new Error(`snapshot is damaged: its hash is ${result.computed}, it should be ${result.expected}; try again`)
  return result.bytes
}

function infoOf(file: FileHandle): SnapshotInfo {
  try {
    return snapshotInfo((offset, length) => {
      const bytes = Buffer.allocUnsafe(length)
      return bytes.subarray(0, readSync(file.fd, bytes, 0, length, offset))
    })
  } catch (error) {
    if (error instanceof DecodeError) throw new Error(`snapshot is damaged: ${error.message}; try again`, { cause: error })
    throw error
  }
}

/** The chunks of a snapshot file, in pieces of 64 KiB. */
export async function* snapshotChunks(path: string): AsyncGenerator<Uint8Array, void> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (error) {
    throw new UsageError(`open "${path}": ${codeOf(error)}`)
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
