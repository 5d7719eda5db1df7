/**
 * The name of a backup: `etcd-CLUSTER-TIME-rREVISION-HASH.age`. Everything that is listed about a backup is in its name, so that it
 * can be listed and checked without the key to its contents.
 */
import { createHash } from 'node:crypto'

/** What the name of a backup states. */
export interface BackupName {
  /** 8 hexadecimal digits that stand for the cluster. */
  readonly cluster: string
  readonly taken: Date
  /** Revision of etcd in it. */
  readonly revision: number
  /** The first 16 hexadecimal digits of the SHA-256 of the file. */
  readonly hash: string
}

const pattern = /^etcd-([0-9a-f]{8})-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-r(\d{1,15})-([0-9a-f]{16})\.age$/
const hashLength = 16

/** The name of a backup; `hash` is the SHA-256 of the file. */
export function backupName({ cluster, taken, revision, hash }: BackupName): string {
  const time = `${taken.toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  return `etcd-${cluster}-${time}-r${revision}-${hash.slice(0, hashLength)}.age`
}

/** What a name states; undefined for the name of something else. */
export function backupNameOf(name: string): BackupName | undefined {
  const [, cluster = '', year, month, day, hour, minute, second, revision, hash = ''] = pattern.exec(name) ?? []
  if (cluster === '') return undefined
  const taken = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  return Number.isNaN(taken.getTime()) ? undefined : { cluster, taken, revision: Number(revision), hash }
}

/** Whether the contents of a backup are those of its name; `sha256` is in hexadecimal. */
export const matchesName = (name: string, sha256: string): boolean => backupNameOf(name)?.hash === sha256.slice(0, hashLength)

/** The digits that stand for a cluster, from what only it has: its id, or the certificate of its authority. */
export const clusterMark = (identity: string): string => createHash('sha256').update(identity).digest('hex').slice(0, 8)
