import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { BoltDatabase } from '../../src/wire/bolt.ts'
import { snapshotInfo } from '../../src/wire/etcd/snapshot-info.ts'
import { mutated, numbers } from '../fuzz/mutate.ts'

/** A snapshot of etcd 3.6.16 with 300 keys put and one of them deleted. */
const snapshot = gunzipSync(readFileSync(join(import.meta.dir, 'bolt/etcd-3.6.16.snapshot.gz')))
const reading = (bytes: Uint8Array) => (offset: number, length: number) => bytes.subarray(offset, offset + length)

describe('a database of etcd', () => {
  test('has its buckets in order, each with its entries in order', () => {
    const found: Record<string, number> = {}
    const keys: string[] = []
    new BoltDatabase(reading(snapshot)).eachEntry((bucket) => {
      const name = Buffer.from(bucket).toString()
      found[name] = 0
      return (key) => {
        found[name]!++
        if (name === 'key') keys.push(Buffer.from(key).toString('hex'))
      }
    })
    expect(found).toMatchObject({ key: 301, members: 1 })
    expect(Object.keys(found)).toEqual(Object.keys(found).toSorted())
    expect(keys).toEqual(keys.toSorted())
  })

  test('has the hash, revision and keys that the status command of etcdutl 3.6.16 computes', () => {
    expect(snapshotInfo(reading(snapshot))).toEqual({ hash: '13bb3e4e', revision: 302, keys: 299, size: 57_344 })
  })

  test('is read from its other meta page when one was not written completely', () => {
    for (const damaged of [0, 4096]) {
      const bytes = Buffer.from(snapshot)
      bytes.fill(0, damaged, damaged + 100)
      expect(new BoltDatabase(reading(bytes)).size).toBe(57_344)
    }
    const neither = Buffer.from(snapshot).fill(0, 0, 4200)
    expect(() => new BoltDatabase(reading(neither))).toThrow('decode bolt database at 0: no valid meta page')
  })

  test('that is truncated or changed at random is read or refused with a DecodeError', () => {
    expect(() => snapshotInfo(reading(snapshot.subarray(0, 20_000)))).toThrow('the file is cut')
    const pick = numbers(1)
    for (let times = 0; times < 300; times++) {
      // The two pages with the sums stay: behind them nothing has one.
      const bytes = Buffer.concat([snapshot.subarray(0, 8192), mutated([snapshot.subarray(8192)], pick)])
      try {
        snapshotInfo(reading(bytes))
      } catch (error) {
        expect((error as Error).name).toBe('DecodeError')
      }
    }
  })
})
