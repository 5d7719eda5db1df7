/** The files of a real etcd 3.6.16: 600 puts and deletes, snapshots of raft, history discarded up to revision 250. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { keyHash } from '../../../src/wire/etcd/key-hash.ts'
import { readProtobufFields } from '../../../src/wire/etcd/protobuf-fields.ts'
import { verifyRaftSnapshot } from '../../../src/wire/etcd/raft-snapshot.ts'
import { verifyDatabase } from '../../../src/wire/etcd/verify-database.ts'
import { isWalSegment, verifyWal } from '../../../src/wire/etcd/wal.ts'
import { mutated, numbers } from '../../fuzz/mutate.ts'

const file = (name: string) => gunzipSync(readFileSync(join(import.meta.dir, `etcd-3.6.16.${name}.gz`)))
const log = file('wal')
const snapshot = file('snap')
const database = file('db')
const reading = (bytes: Uint8Array) => (offset: number, length: number) => bytes.subarray(offset, offset + length)
const segment = (bytes: Uint8Array, name = '0000000000000000-0000000000000000.wal') => ({ name, bytes })
const changed = (bytes: Uint8Array, at: number, ...values: number[]) => {
  const copy = Buffer.from(bytes)
  copy.set(values, at)
  return copy
}
const owner = { member: '443629905751424238', cluster: '13455796455940752355' }

describe('the log', () => {
  test('names the member that wrote it', () => {
    expect(verifyWal([segment(log)])).toEqual({ owner, last: 507n })
    expect(['0000000000000000-0000000000000000.wal', '0.tmp', '0000000000000001-0000000000000002.wal.broken'].map(isWalSegment)).toEqual([
      true,
      false,
      false,
    ])
  })

  test('is damaged when a byte of a record is another one', () => {
    for (const at of [200, 5000, 40_000])
      expect(() => verifyWal([segment(changed(log, at, (log[at] ?? 0) ^ 1))])).toThrow('decode etcd log')
  })

  test('may end within its last record, as after a crash, but not within a record before another segment', () => {
    const end = log.lastIndexOf(0x22)
    const cut = log.subarray(0, end)
    expect(verifyWal([segment(cut)]).owner).toEqual(owner)
    const next = segment(log, '0000000000000001-0000000000000100.wal')
    expect(() => verifyWal([segment(cut), next])).toThrow('does not fit')
    const torn = Buffer.from(log)
    torn.fill(0, 40_960, 41_472)
    expect(() => verifyWal([segment(torn), next])).toThrow('decode etcd log')
  })

  test('continues from segment to segment', () => {
    const missing = segment(log, '0000000000000002-0000000000000100.wal')
    expect(() => verifyWal([segment(log), missing])).toThrow('segment 1 is missing')
    // The first record of a segment is the checksum of all before it, which is not 0.
    expect(() => verifyWal([segment(log), segment(log, '0000000000000001-0000000000000100.wal')])).toThrow('checksum does not continue')
  })
})

describe('the database', () => {
  test('has the hash that its member reported', () => {
    expect(verifyDatabase(reading(database))).toBe(507n)
    expect(keyHash(reading(database))).toEqual({ hash: 608_704_057, revision: 503, compacted: 250 })
  })

  test('with another value is whole, and has another hash', () => {
    const other = Buffer.from(database.toString('latin1').replaceAll('value-199x', 'value-198x'), 'latin1')
    verifyDatabase(reading(other))
    expect(keyHash(reading(other))?.hash).not.toBe(608_704_057)
  })

  test('with a page of something else is damaged', () => {
    for (const page of [3, 6, 10]) {
      const other = Buffer.from(database).fill(0x5a, page * 4096, page * 4096 + 64)
      const verify = () => verifyDatabase(reading(other))
      try {
        verify()
        // A free page: nothing reads it.
        expect(keyHash(reading(other))?.hash).toBe(608_704_057)
      } catch (error) {
        expect((error as Error).name).toBe('DecodeError')
      }
    }
    const keys = database.indexOf('value-199x')
    expect(() => verifyDatabase(reading(Buffer.from(database).fill(0x5a, keys - 20, keys)))).toThrow('decode')
  })
})

test('a snapshot of raft has its checksum', () => {
  verifyRaftSnapshot(snapshot)
  expect(() => verifyRaftSnapshot(changed(snapshot, 4000, 0))).toThrow('checksum is different')
  expect(() => verifyRaftSnapshot(Buffer.alloc(0))).toThrow('it has no data')
})

test('changed at random, each is read or refused with a DecodeError', () => {
  const pick = numbers(1)
  for (let times = 0; times < 60; times++) {
    for (const verify of [
      () => verifyWal([segment(mutated([log], pick))]),
      () => verifyRaftSnapshot(mutated([snapshot], pick)),
      () => verifyDatabase(reading(mutated([database], pick))),
      () => keyHash(reading(mutated([database], pick))),
      () => [...readProtobufFields(mutated([snapshot.subarray(0, 64)], pick))],
    ])
      try {
        verify()
      } catch (error) {
        expect((error as Error).name).toBe('DecodeError')
      }
  }
})
