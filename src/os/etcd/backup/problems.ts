/** What an operator has to know about backups. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { EtcdBackupStatus } from '../resources/etcd-backup.ts'
import type { BackupListing } from './target.ts'

/** Milliseconds after its time when a backup that no control plane took is reported. */
const overdueAfter = 1_800_000

/** The problems of a node's backups, each with the id of its diagnostic. `now` is the wall clock's. */
export function backupProblems(
  { lastError, lastSuccess, nextRun }: SpecOf<typeof EtcdBackupStatus>,
  { backups, failures }: BackupListing,
  now: Date,
): { readonly id: string; readonly message: string; readonly details: readonly string[] }[] {
  const last = lastSuccess ? `the last one was taken at ${lastSuccess.time}` : 'there is none yet'
  const failed = lastError && {
    id: 'etcd-backup-failed',
    message: `etcd is not backed up${lastError.target && ` to target "${lastError.target}"`}: ${lastError.message}; it is tried again, ${last}`,
    details: [],
  }
  const overdue = now.getTime() - new Date(nextRun).getTime() > overdueAfter && {
    id: 'etcd-backup-overdue',
    message: `a backup of etcd was due at ${nextRun} and no control plane has taken it: ${last}; "talosctl get etcdbackupstatus" on each shows why`,
    details: [],
  }
  const unreachable = !lastError &&
    failures.length > 0 && {
      id: 'etcd-backup-target',
      message: `backups of etcd cannot be listed: ${failures.map(({ target, message }) => `target "${target}": ${message}`).join('; ')}`,
      details: [],
    }
  const names = backups.filter(({ state }) => state === 'damaged').map(({ target, name }) => `${target}/${name}`)
  const damaged = names.length > 0 && {
    id: 'etcd-backup-damaged',
    message: `${names.length} of the backups of etcd are damaged and are left where they are: examine the disk, then delete them`,
    details: names.slice(0, 20),
  }
  return [failed, overdue, unreachable, damaged].flatMap((problem) => problem || [])
}
