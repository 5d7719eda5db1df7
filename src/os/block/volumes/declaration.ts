/** What the configuration says of volumes, in the form of resources. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { DocumentOf } from '../../../document/kind.ts'
import { parseByteSize } from '../../../document/quantity.ts'
import { type PartitionType, partitionTypes } from '../../../wire/gpt/types.ts'
import { type Declared, findAll } from '../../config/declared.ts'
import { type RawVolumeConfig, VolumeConfig as VolumeDocumentKind } from '../documents/volume.ts'
import type { VolumeConfig } from '../resources/volume-config.ts'
import { mebibyte } from '../sizes.ts'

type Config = SpecOf<typeof VolumeConfig>
type PartitionSpec = NonNullable<Config['provisioning']['partitionSpec']>

/** A provisioning section. */
export type Provisioning = NonNullable<DocumentOf<typeof RawVolumeConfig>['provisioning']>

/** A document about a volume that is made here: all kinds agree on these sections. */
export type VolumeDocument = DocumentOf<typeof RawVolumeConfig>

/** The system's own volumes by name, as far as the configuration speaks of them. */
export type SystemVolumes = ReadonlyMap<string, DocumentOf<typeof VolumeDocumentKind>>

/** What the configuration says of the system's own volumes. */
export const systemVolumes = (config: Declared): SystemVolumes =>
  new Map(findAll(config, VolumeDocumentKind).map((document) => [document.name ?? '', document]))

/** Sizes of a partition: bytes, a share of the disk in percent, or with a minus what is to stay free. */
export interface Sizes {
  minSize: number
  maxSize?: number
  relativeMaxSize?: number
  negativeMaxSize?: boolean
  grow: boolean
}

/** Sizes as a provisioning section says them, and these where it says nothing. */
export function provisioningOf({ minSize, maxSize = '', grow }: Provisioning, usual: { minSize: number; grow: boolean }): Sizes {
  const negative = maxSize.startsWith('-')
  const bare = maxSize.replace(/^-/, '')
  const most = bare.endsWith('%') ? { relativeMaxSize: Number.parseFloat(bare) } : bare ? { maxSize: parseByteSize(bare) } : {}
  const least = minSize === undefined ? undefined : parseByteSize(minSize)
  // A volume that may become only so large needs no more than that to begin with.
  const wanted = least ?? Math.min(usual.minSize, most.maxSize && !negative ? most.maxSize : usual.minSize)
  return { minSize: wanted, ...most, negativeMaxSize: negative, grow: grow ?? usual.grow }
}

/** A partition of these sizes. */
export function partitionSpec(label: string, sizes: Sizes, type: PartitionType = 'linux'): PartitionSpec {
  return { relativeMaxSize: 0, negativeMaxSize: false, ...sizes, label, typeUUID: partitionTypes[type].toUpperCase() }
}

/** Least size of a volume for workloads that says only its most. */
export const usualMinSize = 100 * mebibyte

/** Encryption as a document asks for it. */
export function encryptionOf(document: Pick<VolumeDocument, 'encryption'> | undefined): Pick<Config, 'encryption'> {
  const section = document?.encryption
  if (!section) return {}
  return {
    encryption: {
      provider: section.provider ?? 'luks2',
      keys: (section.keys ?? []).map((key) => ({
        slot: key.slot ?? 0,
        type: key.static ? 'static' : key.nodeID ? 'nodeID' : key.kms ? 'kms' : 'tpm',
        ...(key.lockToState && { lockToState: true }),
        ...(key.static?.passphrase && { staticPassphrase: key.static.passphrase }),
        ...(key.kms?.endpoint && { kmsEndpoint: key.kms.endpoint }),
        ...(key.tpm?.checkSecurebootStatusOnEnroll && { tpmCheckSecurebootStatusOnEnroll: true }),
        ...(key.tpm?.options?.pcrs && { pcrs: key.tpm.options.pcrs }),
      })),
      ...(section.cipher && { cipher: section.cipher }),
      ...(section.keySize && { keySize: section.keySize }),
      ...(section.blockSize && { blockSize: section.blockSize }),
      ...(section.options && { perfOptions: [...section.options] }),
    },
  }
}
