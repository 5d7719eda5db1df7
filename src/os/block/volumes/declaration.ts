/** What the configuration says of volumes, in the form of resources. */
import type { SpecOf } from '../../../cosi/resource.ts'
import { parseByteSize } from '../../../document/quantity.ts'
import { type PartitionType, partitionTypes } from '../../../wire/gpt/types.ts'
import type { VolumeConfig } from '../resources/volume-config.ts'
import { mebibyte } from '../sizes.ts'

type Config = SpecOf<typeof VolumeConfig>
type PartitionSpec = NonNullable<Config['provisioning']['partitionSpec']>

/** A provisioning section. */
export interface Provisioning {
  diskSelector?: { match?: string }
  grow?: boolean
  minSize?: string
  maxSize?: string
}

/** A document about a volume, as far as all kinds agree. */
export interface VolumeDocument {
  readonly kind?: string
  readonly name: string
  readonly provisioning?: Provisioning
  readonly encryption?: {
    provider?: string
    keys?: readonly {
      slot?: number
      static?: { passphrase?: string }
      nodeID?: object
      kms?: { endpoint?: string }
      tpm?: { options?: { pcrs?: number[] }; checkSecurebootStatusOnEnroll?: boolean }
      lockToState?: boolean
    }[]
    cipher?: string
    keySize?: number
    blockSize?: number
    options?: readonly string[]
  }
  readonly [key: string]: unknown
}

/** All documents about volumes. */
export interface Declaration {
  /** Of the system's own, by name. */
  readonly volumes: ReadonlyMap<string, VolumeDocument>
  readonly others: readonly VolumeDocument[]
}

/** Kinds of documents that stand for a volume of their own. */
export const volumeKinds = ['UserVolumeConfig', 'RawVolumeConfig', 'SwapVolumeConfig', 'ExistingVolumeConfig', 'ExternalVolumeConfig']

/** The documents about volumes. */
export function declarationOf(documents: readonly Readonly<Record<string, any>>[]): Declaration {
  const own = documents.filter(({ kind }) => kind === 'VolumeConfig') as unknown as VolumeDocument[]
  return {
    volumes: new Map(own.map((document) => [document.name, document])),
    others: documents.filter(({ kind }) => volumeKinds.includes(kind)) as unknown as VolumeDocument[],
  }
}

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
