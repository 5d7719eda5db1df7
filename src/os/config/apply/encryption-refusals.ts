/** Changes of encrypted volumes that would leave a machine without a key for its own disk. */
import type { Store } from '../../../cosi/store.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import type { ConfigContainer } from '../container.ts'
import { type Encryption, type EncryptionKey, encryptions } from '../encryptions.ts'
import type { Refusal } from './refusals.ts'

/** Everything against changing the encryption of volumes that are on the disk. */
export function encryptionRefusals(inForce: ConfigContainer, next: ConfigContainer, store: Pick<Store, 'get'>): Refusal[] {
  const after = encryptions(next)
  return [...encryptions(inForce)].flatMap(([id, was]) => {
    const status = store.get(VolumeStatus, id)?.spec
    if (!after.has(id) || !status?.location) return []
    const reason = reasonAgainst(was, after.get(id), status.encryptionFailedSyncs ?? [])
    if (!reason) return []
    // The machine could not even read its configuration.
    return [{ message: `volume "${id}": ${reason}`, forcible: id !== 'STATE' }]
  })
}

function reasonAgainst(was: Encryption | undefined, is: Encryption | undefined, failed: readonly string[]): string | undefined {
  if (!was && !is) return undefined
  if (!was || !is) return `it is ${was ? '' : 'not '}encrypted on the disk, which changes only when it is wiped and created again`
  const [old, now] = [was, is].map(({ keys = [] }) => new Set(keys.map(materialOf)))
  const kept = [...(old ?? [])].filter((key) => now?.has(key))
  if (kept.length === 0) return 'none of its keys stays: keep one until a new one is in place, then remove it with a second change'
  if (kept.length < (old?.size ?? 0) && failed.length > 0)
    return `keys are removed while others are not in place (${failed.join('; ')}): correct those first`
  return undefined
}

/** What opens the volume. Other PCRs are the same key in the TPM, which is sealed again. */
function materialOf({ static: passphrase, nodeID, kms, lockToState = false }: EncryptionKey): string {
  if (passphrase) return JSON.stringify(['static', passphrase.passphrase ?? '', lockToState])
  if (nodeID) return JSON.stringify(['nodeID', '', lockToState])
  return JSON.stringify(kms ? ['kms', kms.endpoint ?? '', lockToState] : ['tpm', '', lockToState])
}
