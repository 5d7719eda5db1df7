import { EtcdBackup, EtcdBackupStatus } from './resources/etcd-backup.ts'
import { EtcdConfig } from './resources/etcd-config.ts'
import { EtcdMember } from './resources/etcd-member.ts'
import { EtcdRepair } from './resources/etcd-repair.ts'
import { EtcdSpec } from './resources/etcd-spec.ts'
import { EtcdStart } from './resources/etcd-start.ts'
import { EtcdUpkeep } from './resources/etcd-upkeep.ts'
import { PKIStatus } from './resources/pki-status.ts'

/** The kinds of resources of this area. */
export const resources = [EtcdBackup, EtcdBackupStatus, EtcdConfig, EtcdMember, EtcdRepair, EtcdSpec, EtcdStart, EtcdUpkeep, PKIStatus]
