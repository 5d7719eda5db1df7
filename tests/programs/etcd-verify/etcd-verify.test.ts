import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { verifyData } from '../../../src/programs/etcd-verify/etcd-verify.ts'

const original = (name: string) => gunzipSync(readFileSync(join(import.meta.dir, `../../wire/etcd/etcd-3.6.16.${name}.gz`)))
let folder = ''
const log = () => join(folder, 'member/wal/0000000000000000-0000000000000000.wal')
const database = () => join(folder, 'member/snap/db')
const snapshot = () => join(folder, 'member/snap/0000000000000002-0000000000000192.snap')

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ichor-etcd-verify-'))
  mkdirSync(join(folder, 'member/wal'), { recursive: true })
  mkdirSync(join(folder, 'member/snap'))
  writeFileSync(log(), original('wal'))
  writeFileSync(database(), original('db'))
  writeFileSync(snapshot(), original('snap'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const damage = () => verifyData(folder).damage.map(({ file, problem }) => `${file}: ${problem}`)

test('data that is in order has an owner and a hash', () => {
  expect(verifyData(folder)).toEqual({
    owner: { member: '443629905751424238', cluster: '13455796455940752355' },
    keys: { hash: 608_704_057, revision: 503, compacted: 250 },
    damage: [],
  })
})

test('what is missing is damaged', () => {
  rmSync(database())
  rmSync(log())
  expect(damage()).toEqual([expect.stringContaining('member/wal: decode etcd log'), expect.stringContaining('member/snap/db: ENOENT')])
})

test('a database is damaged that is ahead of its log', () => {
  truncateSync(log(), 20_000)
  expect(damage()).toEqual([expect.stringMatching(/^member\/snap\/db: .*it ends at entry \d+, and the database has entry 507$/)])
})

test('a log that etcd has cut off is damaged, unless it was used since', () => {
  writeFileSync(`${log()}.broken`, original('wal'))
  expect(damage()).toEqual([expect.stringContaining('etcd has cut it off at a damaged record')])
  const before = new Date(Date.now() - 120_000)
  utimesSync(`${log()}.broken`, before, before)
  expect(damage()).toEqual([])
})

test('one snapshot of raft that is in order is enough', () => {
  writeFileSync(join(folder, 'member/snap/0000000000000002-0000000000000200.snap'), 'damaged')
  expect(damage()).toEqual([])
  writeFileSync(snapshot(), 'damaged')
  expect(damage()).toHaveLength(1)
})
