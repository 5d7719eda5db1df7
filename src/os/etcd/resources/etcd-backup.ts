import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** What is known of a stored backup: `intact` and `damaged` by the hash in its name, `unchecked` where it was not read. */
export const backupState = v.picklist(['intact', 'damaged', 'unchecked'])

/** A backup of etcd in a target of this node. */
export const EtcdBackup = defineResource({
  type: 'EtcdBackups.etcd.ichor.dev',
  namespace: 'etcd',
  displayType: 'EtcdBackup',
  initials: false,
  columns: { Target: '{.target}', Taken: '{.taken}', Revision: '{.revision}', Size: '{.size}', State: '{.state}' },
  spec: v.object({
    target: v.string(),
    name: v.string(),
    taken: v.string(),
    /** Revision of etcd in it. */
    revision: v.number(),
    /** Bytes as it is stored. */
    size: v.number(),
    state: backupState,
  }),
})

/** The backups that the system takes by itself. */
export const EtcdBackupStatus = defineResource({
  type: 'EtcdBackupStatuses.etcd.ichor.dev',
  namespace: 'etcd',
  displayType: 'EtcdBackupStatus',
  initials: false,
  columns: { State: '{.state}', 'Last Success': '{.lastSuccess.time}', 'Last Error': '{.lastError.message}', 'Next Run': '{.nextRun}' },
  spec: v.object({
    /** `running` while this node takes a backup, `failed` when its last attempt failed. */
    state: v.picklist(['waiting', 'running', 'failed']),
    /** The last backup that any control plane took. */
    lastSuccess: v.optional(
      v.object({
        time: v.string(),
        name: v.string(),
        /** The node that took it. */
        node: v.string(),
        revision: v.number(),
        /** Bytes as it is stored. */
        size: v.number(),
      }),
    ),
    /** The last failure on this node since the last backup that was stored everywhere. */
    lastError: v.optional(v.object({ time: v.string(), target: v.string(), message: v.string() })),
    nextRun: v.string(),
    /** Files in the targets that are no backups of this cluster. They are left alone. */
    foreign: v.array(v.string()),
  }),
})
