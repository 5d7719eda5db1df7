/**
 * etcd-verify: reads the data of an etcd that does not run, and prints as JSON whose it is and what is wrong with it. A program of
 * its own, since gigabytes are read.
 */
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { ReadAt } from '../../wire/bolt.ts'
import { DecodeError } from '../../wire/decode-error.ts'
import { failedWith } from '../../wire/errno.ts'
import { messageOf } from '../../wire/error-message.ts'
import { type KeyHash, keyHash } from '../../wire/etcd/key-hash.ts'
import { verifyRaftSnapshot } from '../../wire/etcd/raft-snapshot.ts'
import { verifyDatabase } from '../../wire/etcd/verify-database.ts'
import { isWalSegment, verifyWal, type WalOwner, type WalSegment } from '../../wire/etcd/wal.ts'

/** Bytes read at a time: the pages of a database are small, and mostly in their order. */
const blockSize = 1 << 20
/** Milliseconds after which a log that was cut off has been in use. */
const usedAfter = 60_000

/** What was found. */
interface Report {
  owner?: WalOwner
  /** For a comparison with the other members. */
  keys?: KeyHash
  damage: { file: string; problem: string }[]
}

/** Runs etcd-verify on a data folder. */
export async function main([folder, ...more]: string[]): Promise<number> {
  if (!folder || more.length > 0) {
    console.error('usage: etcd-verify FOLDER')
    return 64
  }
  console.log(JSON.stringify(verifyData(folder)))
  return 0
}

/** Verifies log, database and snapshots below a data folder of etcd. Throws when there is none. */
export function verifyData(folder: string): Report {
  const snap = join(folder, 'member/snap')
  const report: Report = { damage: [] }
  let last: bigint | undefined
  examine(report, 'member/wal', () => {
    last = verifyLog(join(folder, 'member/wal'), report)
  })
  examine(report, 'member/snap/db', () => {
    const applied = verifyDatabaseFile(join(snap, 'db'), report)
    if (last !== undefined && last < applied)
      throw new DecodeError('etcd log', 0, `it ends at entry ${last}, and the database has entry ${applied}`)
  })
  examine(report, 'member/snap', () => verifySnapshots(snap))
  return report
}

/** Returns the index of the last entry. */
function verifyLog(wal: string, report: Report): bigint {
  const names = readdirSync(wal).sort()
  const own = names.filter(isWalSegment)
  const newest = own.at(-1)
  if (newest === undefined) throw new DecodeError('etcd log', 0, 'it has no segment')
  const { owner, last } = verifyWal(segments(wal, own))
  if (owner) report.owner = owner
  // etcd cuts a log off at a record that is not complete. One that could be used afterwards was written to since.
  const cut = names.find((name) => name === `${newest}.broken`)
  if (cut !== undefined && statSync(join(wal, newest)).mtimeMs - statSync(join(wal, cut)).mtimeMs < usedAfter)
    throw new DecodeError(`etcd log ${newest}`, 0, 'etcd has cut it off at a damaged record')
  return last
}

/** A file that cannot be read is damaged: the disk may be. An error of another kind is not about the data. */
function examine(report: Report, file: string, verify: () => void): void {
  try {
    verify()
  } catch (error) {
    if (!(error instanceof DecodeError) && !failedWith(error, 'EIO', 'ENOENT', 'EUCLEAN')) throw error
    report.damage.push({ file, problem: messageOf(error) })
  }
}

function* segments(folder: string, names: readonly string[]): Generator<WalSegment, void> {
  for (const name of names) yield { name, bytes: readFileSync(join(folder, name)) }
}

/** etcd uses the newest snapshot that is intact, so that one is enough. */
function verifySnapshots(folder: string): void {
  const names = readdirSync(folder).filter((name) => name.endsWith('.snap'))
  const problems = names.flatMap((name) => {
    try {
      verifyRaftSnapshot(readFileSync(join(folder, name)))
      return []
    } catch (error) {
      return [error]
    }
  })
  if (names.length > 0 && problems.length === names.length) throw problems[0]
}

function verifyDatabaseFile(path: string, report: Report): bigint {
  const file = openSync(path, 'r')
  try {
    const read = buffered(file, fstatSync(file).size)
    const applied = verifyDatabase(read)
    const keys = keyHash(read)
    if (keys) report.keys = keys
    return applied
  } finally {
    closeSync(file)
  }
}

/** Reads through one block of memory; what is longer is read by itself. */
function buffered(file: number, size: number): ReadAt {
  const block = Buffer.alloc(blockSize)
  let start = 0
  let filled = 0
  return (offset, length) => {
    const wanted = Math.min(length, Math.max(0, size - offset))
    if (wanted > blockSize) {
      const own = Buffer.alloc(wanted)
      return own.subarray(0, readSync(file, own, 0, wanted, offset))
    }
    if (offset < start || offset + wanted > start + filled) {
      start = offset
      filled = readSync(file, block, 0, blockSize, offset)
    }
    // The caller may keep a page while it reads the next one.
    return Buffer.from(block.subarray(offset - start, offset - start + wanted))
  }
}
