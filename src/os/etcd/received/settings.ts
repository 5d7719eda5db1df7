/** The settings of the store for backups of other clusters, from the configuration. */
import { parseByteSize } from '../../../document/quantity.ts'
import { milliseconds } from '../../../wire/duration.ts'
import { type Declared, find } from '../../config/public.ts'
import type { Retention } from '../backup/retention.ts'
import { EtcdBackupStoreConfig } from '../documents/etcd-backup-store.ts'

/** What is taken from a sender, and kept of it. */
export interface SenderLimits {
  /** Bytes of one backup. */
  readonly maxSize: number
  /** New backups in an hour. */
  readonly hourly: number
  readonly retention: Retention
}

/** The store. */
export interface StoreSettings {
  readonly volume: string
  /** Where each sender has a folder. */
  readonly folder: string
  readonly senders: ReadonlyMap<string, SenderLimits>
}

const defaults = { path: 'received-etcd-backups', maxSize: 2 * 1024 ** 3, hourly: 12, keepLast: 30 }

/** The settings that a configuration has; undefined when it declares no store. */
export function storeSettings(config: Declared | undefined): StoreSettings | undefined {
  const document = find(config, EtcdBackupStoreConfig)
  if (!document) return undefined
  const { volume = '', path = defaults.path, senders = [] } = document
  const limits = senders.map(({ name = '', maxSize = '', hourly = defaults.hourly, retention = {} }) => {
    const { keepLast = defaults.keepLast, maxAge } = retention
    const kept = { keepLast, maxAge: maxAge === undefined ? undefined : milliseconds(maxAge) }
    return [name, { maxSize: parseByteSize(maxSize) ?? defaults.maxSize, hourly, retention: kept }] as const
  })
  return { volume, folder: `/var/mnt/${volume}/${path}`, senders: new Map(limits) }
}
