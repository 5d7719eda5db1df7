/** Converts volume settings of the configuration to resources. */

import type { SpecOf } from '../../../cosi/resource.ts'
import type { DocumentOf } from '../../../document/kind.ts'
import { parseByteSize } from '../../../document/quantity.ts'
import { type PartitionType, partitionTypes } from '../../../wire/gpt/types.ts'
import { sortedPcrs } from '../../../wire/tpm2/pcr.ts'
import { type Declared, findAll } from '../../config/public.ts'
import { type RawVolumeConfig, VolumeConfig as VolumeDocumentKind } from '../documents/volume.ts'
import type { VolumeConfig } from '../resources/volume-config.ts'
import { mebibyte } from '../sizes.ts'

type Config = SpecOf<typeof VolumeConfig>
type PartitionSpec = NonNullable<Config['provisioning']['partitionSpec']>

/** A provisioning section. */
export type Provisioning = NonNullable<DocumentOf<typeof RawVolumeConfig>['provisioning']>

/** A document of a provisioned volume: all kinds share these sections. */
export type VolumeDocument = DocumentOf<typeof RawVolumeConfig>

/** The configured system volumes by name. */
export type SystemVolumes = ReadonlyMap<string, DocumentOf<typeof VolumeDocumentKind>>

/** The system volume documents of the configuration. */
export const systemVolumes = (config: Declared): SystemVolumes =>
  new Map(findAll(config, VolumeDocumentKind).map((document) => [document.name ?? '', document]))

/** Sizes of a partition: bytes, percent of the disk, or, with a minus, the space to leave free. */
export interface Sizes {
  minSize: number
  maxSize?: number | undefined
  relativeMaxSize?: number
  negativeMaxSize?: boolean
  grow: boolean
}

/** Sizes of a provisioning section, with the given defaults. */
export function provisioningOf({ minSize, maxSize = '', grow }: Provisioning, usual: { minSize: number; grow: boolean }): Sizes {
  const negative = maxSize.startsWith('-')
  const bare = maxSize.replace(/^-/, '')
  const most = bare.endsWith('%') ? { relativeMaxSize: Number.parseFloat(bare) } : bare ? { maxSize: parseByteSize(bare) } : {}
  const least = minSize === undefined ? undefined : parseByteSize(minSize)
  // A volume with a small maximum size has no larger minimum.
  const wanted = least ?? Math.min(usual.minSize, most.maxSize && !negative ? most.maxSize : usual.minSize)
  return { minSize: wanted, ...most, negativeMaxSize: negative, grow: grow ?? usual.grow }
}

/** The spec of a partition with these sizes. */
export function partitionSpec(label: string, sizes: Sizes, type: PartitionType = 'linux'): PartitionSpec {
  return { relativeMaxSize: 0, negativeMaxSize: false, ...sizes, label, typeUUID: partitionTypes[type].toUpperCase() }
}

/** Default minimum size of a workload volume. */
export const usualMinSize = 100 * mebibyte

/** An encryption section, of a document or of the older form. */
interface EncryptionSection {
  readonly provider?: string | undefined
  readonly keys?: readonly KeySection[] | undefined
  readonly cipher?: string | undefined
  readonly keySize?: number | undefined
  readonly blockSize?: number | undefined
  readonly options?: readonly string[] | undefined
}

interface KeySection {
  readonly slot?: number | undefined
  readonly static?: { passphrase?: string | undefined } | undefined
  readonly nodeID?: object | undefined
  readonly kms?: { endpoint?: string | undefined } | undefined
  readonly tpm?: { options?: { pcrs?: number[] | undefined } | undefined; checkSecurebootStatusOnEnroll?: boolean | undefined } | undefined
  readonly lockToState?: boolean | undefined
}

const isTpm = ({ static: fixed, nodeID, kms }: KeySection): boolean => !fixed && !nodeID && !kms

/** PCRs of a key in the TPM. One that has no options is sealed to the state of Secure Boot; every one to signatures of PCR 11. */
const sealedTo = (options: { pcrs?: number[] | undefined } | undefined) => ({
  pcrs: sortedPcrs(options ? (options.pcrs ?? []) : [7]),
  pubKeyPcrs: [11],
})

/** Encryption settings of a section. */
export function encryptionOf(section: EncryptionSection | undefined): Pick<Config, 'encryption'> {
  if (!section) return {}
  return {
    encryption: {
      provider: section.provider || 'luks2',
      keys: (section.keys ?? []).map((key) => ({
        slot: key.slot ?? 0,
        type: key.static ? 'static' : key.nodeID ? 'nodeID' : key.kms ? 'kms' : 'tpm',
        ...(key.lockToState && { lockToState: true }),
        ...(key.static?.passphrase && { staticPassphrase: key.static.passphrase }),
        ...(key.kms?.endpoint && { kmsEndpoint: key.kms.endpoint }),
        ...(key.tpm?.checkSecurebootStatusOnEnroll && { tpmCheckSecurebootStatusOnEnroll: true }),
        ...(isTpm(key) && sealedTo(key.tpm?.options)),
      })),
      ...(section.cipher && { cipher: section.cipher }),
      ...(section.keySize && { keySize: section.keySize }),
      ...(section.blockSize && { blockSize: section.blockSize }),
      ...(section.options && { perfOptions: [...section.options] }),
    },
  }
}
