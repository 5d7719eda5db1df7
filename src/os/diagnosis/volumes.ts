/** Volumes that failed, and encrypted ones with keys that do not work. */
import type { Store } from '../../cosi/store.ts'
import { VolumeStatus } from '../block/resources/volume-status.ts'
import type { Finding } from './findings.ts'

/** Volumes that are not available, and those that would not be with their other keys alone. */
export function troubledVolumes(store: Store): Finding[] {
  return store
    .list(VolumeStatus)
    .flatMap(({ metadata: { id }, spec: { phase, errorMessage, encryptionFailedSyncs = [], encryptionSlot } }) => {
      const volume = { about: { kind: 'resource', type: VolumeStatus.type, id }, subject: `volume ${id}` } as const
      if (phase === 'failed')
        return { ...volume, kind: 'failing', sentence: 'it cannot be used, and what needs it waits', error: errorMessage, urgent: true }
      if (encryptionFailedSyncs.length === 0) return []
      return {
        ...volume,
        kind: 'unhealthy',
        sentence: `the key of slot ${encryptionSlot} opened it, but not all keys of the configuration are in place: each is tried again at the next start, if not before`,
        error: encryptionFailedSyncs.join('; '),
      }
    })
}
