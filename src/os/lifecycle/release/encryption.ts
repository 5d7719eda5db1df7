/**
 * Whether a release opens the encrypted volumes of this node. One that does not finds no configuration on an encrypted STATE, and no
 * data of the node on an encrypted EPHEMERAL.
 */
import { policyKeyWord } from '../../../wire/tpm2/pcr-signatures.ts'
import type { Machine } from '../../area.ts'
import { findBootPolicy } from '../../block/public.ts'
import { DiscoveredVolume } from '../../block/resources/discovered-volume.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'

/** The encrypted volumes of this node, by id, with what encrypts them; those that are closed or locked included. */
function encryptedVolumes({ store }: Pick<Machine, 'store'>): Map<string, string> {
  const luks = new Set(
    store
      .list(DiscoveredVolume)
      .filter(({ spec }) => spec.name === 'luks')
      .map(({ spec }) => spec.dev_path),
  )
  const found = new Map<string, string>()
  for (const { metadata, spec } of store.list(VolumeStatus)) {
    const provider = spec.encryptionProvider ?? (spec.location && luks.has(spec.location) ? 'luks2' : undefined)
    if (provider) found.set(metadata.id, provider)
  }
  return found
}

/** Why a release could not open volumes of this node, by what it declares; undefined if it opens them all. */
export function cannotOpen(machine: Pick<Machine, 'store' | 'kernel'>, encryption: readonly string[] = []): string | undefined {
  const volumes = [...encryptedVolumes(machine)].filter(([, provider]) => !encryption.includes(provider)).map(([id]) => id)
  if (volumes.length > 0)
    return `it does not declare that it opens encrypted volumes, and ${volumes.sort().join(', ')} ${volumes.length === 1 ? 'is' : 'are'} encrypted`
  const sealed = machine.store
    .list(VolumeStatus)
    .filter(({ spec }) => spec.configuredEncryptionKeys?.every((kind) => kind === 'tpm'))
    .map(({ metadata }) => metadata.id)
  if (sealed.length === 0) return undefined
  const policy = findBootPolicy(machine.kernel.files)
  if (!policy || encryption.includes(policyKeyWord(policy.fingerprint))) return undefined
  return `it is not signed with the PCR key of the running image, and only the TPM opens ${sealed.sort().join(', ')}: add another kind of key first`
}
