/** How the volumes of a configuration are encrypted. */

import { siblingEndpoint } from '../../wire/luks2/kms-endpoint.ts'
import { DiskRecoveryConfig } from '../block/documents/disk-recovery.ts'
import { RawVolumeConfig, SwapVolumeConfig, UserVolumeConfig, VolumeConfig } from '../block/documents/volume.ts'
import type { ConfigContainer } from './container.ts'

/** A key of a volume. */
export interface EncryptionKey {
  readonly slot?: number | undefined
  readonly static?: { passphrase?: string | undefined } | undefined
  readonly nodeID?: object | undefined
  readonly kms?: { endpoint?: string | undefined } | undefined
  readonly tpm?: object | undefined
  readonly lockToState?: boolean | undefined
}

/** The encryption of a volume. */
export interface Encryption {
  readonly keys?: readonly EncryptionKey[] | undefined
}

/** The encryption of every volume that may have one, by id. */
export function encryptions(config: Pick<ConfigContainer, 'v1alpha1' | 'findAll'>): Map<string, Encryption | undefined> {
  const { state, ephemeral } = config.v1alpha1?.machine?.systemDiskEncryption ?? {}
  const volumes = new Map<string, Encryption | undefined>([
    ['STATE', state],
    ['EPHEMERAL', ephemeral],
  ])
  for (const { name = '', encryption } of config.findAll(VolumeConfig)) if (encryption) volumes.set(name, encryption)
  for (const [prefix, kind] of [
    ['u', UserVolumeConfig],
    ['r', RawVolumeConfig],
    ['s', SwapVolumeConfig],
  ] as const)
    for (const { name = '', encryption } of config.findAll(kind)) volumes.set(`${prefix}-${name}`, encryption)
  return volumes
}

/** What is against keys that control planes seal, one line a volume. */
export function siblingProblems(config: Pick<ConfigContainer, 'v1alpha1' | 'findAll'>): string[] {
  const { type = 'worker' } = config.v1alpha1?.machine ?? {}
  return [...encryptions(config)].flatMap(([id, { keys = [] } = {}]) => {
    if (!keys.some(({ kms }) => kms?.endpoint === siblingEndpoint)) return []
    if (id === 'STATE') return `volume "STATE": "${siblingEndpoint}" needs the configuration, which is on STATE: use a KMS or tpm`
    // Its own STATE has what seals.
    if (type !== 'worker')
      return `volume "${id}": "${siblingEndpoint}" protects nothing on a control plane, which holds the keys that seal: use tpm`
    return []
  })
}

/** A warning of volumes that a change of the machine may lock for ever; undefined where there are none. */
export function unrecoverable(config: Pick<ConfigContainer, 'v1alpha1' | 'findAll'>): string | undefined {
  if (config.findAll(DiskRecoveryConfig).length > 0) return undefined
  const onlyTpm = ({ keys = [] }: Encryption = {}) =>
    keys.length > 0 && keys.every((key) => key.tpm && !key.static && !key.nodeID && !key.kms)
  const volumes = [...encryptions(config)].flatMap(([id, encryption]) => (onlyTpm(encryption) ? id : []))
  if (volumes.length === 0) return undefined
  return `only the TPM opens ${volumes.join(', ')}: if it is replaced or cleared, the content is lost; add a DiskRecoveryConfig or another key`
}
