import { expect, test } from 'bun:test'
import { backupProblems } from '../../../../src/os/etcd/backup/problems.ts'

const now = new Date('2026-01-01T00:00:00Z')
const status = { state: 'waiting' as const, nextRun: '2026-01-01T01:00:00Z', foreign: [] }
const listing = { backups: [], failures: [], foreign: [] }

test('certificates for targets are reported two weeks before they expire', () => {
  const problems = (expires?: Date) => backupProblems(status, listing, now, [{ name: 'peer', ...(expires && { expires }) }])
  expect(problems()).toEqual([])
  expect(problems(new Date('2026-01-16T00:00:00Z'))).toEqual([])
  expect(problems(new Date('2026-01-10T00:00:00Z'))).toMatchObject([
    { id: 'etcd-backup-expiry', details: ['target "peer": 2026-01-10T00:00:00.000Z'] },
  ])
})
