/** The settings of backups, from the configuration. */

import { parseSchedule, type Schedule } from '../../../document/cron.ts'
import { parseIdentity, parseRecipient, recipientOf } from '../../../wire/age/keys.ts'
import { milliseconds } from '../../../wire/duration.ts'
import { type Declared, find } from '../../config/public.ts'
import { EtcdBackupConfig, type EtcdBackups, type EtcdBackupTarget } from '../documents/etcd-backup.ts'
import { clusterMark } from '../resources/backup-name.ts'
import { defaultRetention, type Retention } from './retention.ts'
import type { BackupTarget } from './target.ts'

/** What backups are taken with. */
export interface BackupSettings {
  readonly schedule: Schedule
  /** 32 bytes each. */
  readonly recipients: readonly Uint8Array[]
  /** 32 bytes. */
  readonly identity: Uint8Array | undefined
  readonly retention: Retention
  readonly targets: readonly BackupTarget[]
  /** Digits of the cluster. */
  readonly cluster: string
}

/** Opens a target of the configuration; `cluster` are the digits of the cluster. */
export type OpenTarget = (target: EtcdBackupTarget, cluster: string) => BackupTarget

/** The document of a configuration. */
export const backupDocument = (config: Declared | undefined): EtcdBackups | undefined => find(config, EtcdBackupConfig)

/** The settings that a configuration has; undefined when it declares no backups. */
export function backupSettings(config: Declared | undefined, open: OpenTarget): BackupSettings | undefined {
  const document = backupDocument(config)
  const schedule = parseSchedule(document?.schedule ?? '')
  if (!config || !document || !schedule) return undefined
  const { id, ca } = config.cluster
  const cluster = clusterMark(id ?? ca?.crt ?? '')
  const identity = document.identity === undefined ? undefined : parseIdentity(document.identity)
  const recipients = [...(document.recipients ?? []), ...(identity ? [recipientOf(identity)] : [])].map(parseRecipient)
  const { keepLast, maxAge } = document.retention ?? {}
  const retention =
    keepLast === undefined && maxAge === undefined
      ? defaultRetention
      : { keepLast, maxAge: maxAge === undefined ? undefined : milliseconds(maxAge) }
  const targets = (document.targets ?? []).map((target) => open(target, cluster))
  return { schedule, recipients, identity, retention, targets, cluster }
}
