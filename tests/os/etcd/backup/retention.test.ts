import { expect, test } from 'bun:test'
import { outdated } from '../../../../src/os/etcd/backup/retention.ts'
import type { StoredBackup } from '../../../../src/os/etcd/backup/target.ts'
import { backupName, backupNameOf, clusterMark, matchesName } from '../../../../src/os/etcd/resources/backup-name.ts'

const day = 86_400_000
const now = new Date('2026-03-01T00:00:00Z')
const backup = (daysAgo: number, state: StoredBackup['state'] = 'intact'): StoredBackup => {
  const named = { cluster: '0a0b0c0d', taken: new Date(now.getTime() - daysAgo * day), revision: 100 - daysAgo, hash: '0'.repeat(16) }
  return { ...named, name: backupName(named), size: 1, state }
}
const ages = (backups: readonly StoredBackup[]) => backups.map(({ taken }) => (now.getTime() - taken.getTime()) / day)

test('the last ones are kept', () => {
  const backups = [3, 0, 2, 1].map((age) => backup(age))
  expect(ages(outdated(backups, { keepLast: 2, maxAge: undefined }, now))).toEqual([3, 2])
  expect(outdated(backups, { keepLast: 4, maxAge: undefined }, now)).toEqual([])
})

test('old ones are deleted, but never the newest intact one', () => {
  const backups = [9, 8, 7].map((age) => backup(age))
  expect(ages(outdated(backups, { keepLast: undefined, maxAge: day }, now))).toEqual([9, 8])
  expect(ages(outdated([...backups, backup(1, 'damaged')], { keepLast: undefined, maxAge: day }, now))).toEqual([9, 8])
})

test('damaged ones neither count nor are deleted', () => {
  expect(ages(outdated([backup(0), backup(1, 'damaged'), backup(2), backup(3)], { keepLast: 2, maxAge: undefined }, now))).toEqual([3])
})

test('the name of a backup states what is listed, and is that of nothing else', () => {
  const named = { cluster: clusterMark('id'), taken: new Date('2026-11-24T15:26:28Z'), revision: 12345, hash: 'f'.repeat(16) }
  const name = backupName({ ...named, hash: 'f'.repeat(64) })
  expect(name).toBe(`etcd-${named.cluster}-20261124T152628Z-r12345-ffffffffffffffff.age`)
  expect(backupNameOf(name)).toEqual(named)
  expect([matchesName(name, 'f'.repeat(64)), matchesName(name, '0'.repeat(64))]).toEqual([true, false])
  for (const other of ['', 'notes.txt', `.${name}.part`, name.replace('20261124', '20261324'), name.replace('.age', ''), `../${name}`])
    expect(backupNameOf(other), other).toBeUndefined()
})
