/** Rules between documents: settings that may be given only once, and in one place. */
import type { DocumentKind, DocumentOf } from '../../document/kind.ts'
import { VolumeConfig } from '../block/documents/volume.ts'
import { EtcdBackupConfig } from '../etcd/documents/etcd-backup.ts'
import { EtcdBackupStoreConfig } from '../etcd/documents/etcd-backup-store.ts'
import { KubeSpanConfig } from '../kubespan/documents/kubespan.ts'
import { HostnameConfig } from '../network/documents/hostname.ts'
import { SiblingKeysConfig } from '../secrets/documents/sibling-keys.ts'
import { TimeSyncConfig } from '../time/documents/time-sync.ts'
import type { V1Alpha1Document } from './documents/v1alpha1.ts'

/** A document with settings that the v1alpha1 document can have too. */
interface Conflict {
  kind: DocumentKind
  /** The path in the v1alpha1 document, if it is in conflict with this document. */
  with(legacy: V1Alpha1Document, document: unknown): string | undefined
}

/** A conflict of a kind, given documents of that kind. */
const conflict = <K extends DocumentKind>(
  kind: K,
  within: (legacy: V1Alpha1Document, document: DocumentOf<K>) => string | undefined,
): Conflict => ({ kind, with: (legacy, document) => within(legacy, document as DocumentOf<K>) })

/** The conflicts of each kind. */
export const conflicts: readonly Conflict[] = [
  conflict(HostnameConfig, ({ machine }) => {
    if (machine?.network?.hostname) return 'machine.network.hostname'
    return machine?.features?.stableHostname ? 'machine.features.stableHostname' : undefined
  }),
  conflict(KubeSpanConfig, ({ machine }) => (machine?.network?.kubespan ? 'machine.network.kubespan' : undefined)),
  conflict(TimeSyncConfig, ({ machine }) => {
    const { disabled, servers, bootTimeout } = machine?.time ?? {}
    if (disabled) return 'machine.time.disabled'
    if (servers?.length) return 'machine.time.servers'
    return bootTimeout ? 'machine.time.bootTimeout' : undefined
  }),
  conflict(VolumeConfig, ({ machine }, volume) => {
    const key = volume.name === 'STATE' ? 'state' : volume.name === 'EPHEMERAL' ? 'ephemeral' : undefined
    return key && volume.encryption && machine?.systemDiskEncryption?.[key] ? `machine.systemDiskEncryption.${key}` : undefined
  }),
]

/** Kinds that a worker cannot have, since it does not run what they are about. */
export const controlPlaneKinds: readonly DocumentKind[] = [EtcdBackupConfig, EtcdBackupStoreConfig, SiblingKeysConfig]
