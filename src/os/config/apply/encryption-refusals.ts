/** Changes of encrypted volumes that would leave a machine without a key for its own disk. */
import type { Store } from '../../../cosi/store.ts'
import { RawVolumeConfig, SwapVolumeConfig, UserVolumeConfig, VolumeConfig } from '../../block/documents/volume.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import type { ConfigContainer } from '../container.ts'
import type { Refusal } from './refusals.ts'

interface Key {
  readonly slot?: number | undefined
  readonly static?: { passphrase?: string | undefined } | undefined
  readonly nodeID?: object | undefined
  readonly lockToState?: boolean | undefined
}

type Encryption = { readonly keys?: readonly Key[] | undefined } | undefined

/** Everything against changing the encryption of volumes that are on the disk. */
export function encryptionRefusals(inForce: ConfigContainer, next: ConfigContainer, store: Pick<Store, 'get'>): Refusal[] {
  const after = volumesOf(next)
  return [...volumesOf(inForce)].flatMap(([id, was]) => {
    const status = store.get(VolumeStatus, id)?.spec
    if (!after.has(id) || !status?.location) return []
    const reason = reasonAgainst(was, after.get(id), status.encryptionFailedSyncs ?? [])
    if (!reason) return []
    // The machine could not even read its configuration.
    return [{ message: `volume "${id}": ${reason}`, forcible: id !== 'STATE' }]
  })
}

function reasonAgainst(was: Encryption, is: Encryption, failed: readonly string[]): string | undefined {
  if (!was && !is) return undefined
  if (!was || !is) return `it is ${was ? '' : 'not '}encrypted on the disk, which changes only when it is wiped and created again`
  const [old, now] = [was, is].map(({ keys = [] }) => new Set(keys.map(materialOf)))
  const kept = [...(old ?? [])].filter((key) => now?.has(key))
  if (kept.length === 0) return 'none of its keys stays: keep one until a new one is in place, then remove it with a second change'
  if (kept.length < (old?.size ?? 0) && failed.length > 0)
    return `keys are removed while others are not in place (${failed.join('; ')}): correct those first`
  return undefined
}

const materialOf = ({ static: passphrase, nodeID, lockToState = false }: Key): string =>
  JSON.stringify([passphrase?.passphrase ?? '', passphrase ? false : nodeID !== undefined, lockToState])

/** The encryption of every volume that may have one, by id. */
function volumesOf(config: ConfigContainer): Map<string, Encryption> {
  const { state, ephemeral } = config.v1alpha1?.machine?.systemDiskEncryption ?? {}
  const volumes = new Map<string, Encryption>([
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
