/** What an operator has to know about backups. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { EtcdBackupStatus } from '../resources/etcd-backup.ts'
import type { BackupListing, BackupTarget } from './target.ts'

/** Milliseconds after its time when a backup that no control plane took is reported. */
const overdueAfter = 1_800_000

/** Milliseconds before credentials for a target expire when that is reported. */
const expiryNotice = 14 * 24 * 3_600_000

/** The problems of a node's backups, each with the id of its diagnostic. `now` is the wall clock's. */
export function backupProblems(
  { lastError, lastSuccess, nextRun }: SpecOf<typeof EtcdBackupStatus>,
  { backups, failures }: BackupListing,
  now: Date,
  targets: readonly Pick<BackupTarget, 'name' | 'expires'>[] = [],
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
  const expiring = targets.flatMap(({ name, expires }) =>
    expires && expires.getTime() - now.getTime() < expiryNotice ? `target "${name}": ${expires.toISOString()}` : [],
  )
  const expiry = expiring.length > 0 && {
    id: 'etcd-backup-expiry',
    message:
      'certificates for the targets of etcd backups expire: issue others with "talosctl etcd backup sender" where the backups are kept',
    details: expiring,
  }
  return [failed, overdue, unreachable, damaged, expiry].flatMap((problem) => problem || [])
}
