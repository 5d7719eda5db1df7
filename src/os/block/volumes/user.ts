/** Workload volumes from documents. */

import type { SpecOf } from '../../../cosi/resource.ts'
import type { DocumentOf } from '../../../document/kind.ts'
import { type Declared, findAll } from '../../config/public.ts'
import { ExistingVolumeConfig, ExternalVolumeConfig } from '../documents/found-volume.ts'
import { RawVolumeConfig, SwapVolumeConfig, UserVolumeConfig } from '../documents/volume.ts'
import type { VolumeConfig } from '../resources/volume-config.ts'
import { encryptionOf, partitionSpec, provisioningOf, usualMinSize, type VolumeDocument } from './declaration.ts'
import { folderMount } from './folders.ts'

type Config = SpecOf<typeof VolumeConfig>

/** Mount options of a volume; undefined for volumes that are not mounted. */
export interface MountOptions {
  readOnly: boolean
  disableAccessTime: boolean
  secure: boolean
}

/** The volume of a document: id, config and mount options. */
export interface UserVolume {
  id: string
  config: Config
  mount?: MountOptions | undefined
}

const folder = '/var/mnt'
const userWave = 0

/** The volumes of all documents. The document's name with a letter in front is the partition label. */
export const userVolumes = (config: Declared): UserVolume[] => [
  ...findAll(config, UserVolumeConfig).map(forWorkloads),
  ...findAll(config, RawVolumeConfig).map(raw),
  ...findAll(config, SwapVolumeConfig).map(swap),
  ...findAll(config, ExistingVolumeConfig).map(existing),
  ...findAll(config, ExternalVolumeConfig).map(external),
]

const raw = (document: VolumeDocument): UserVolume => ({
  id: `r-${document.name}`,
  config: partition(document, `r-${document.name}`, 'linux'),
})

const swap = (document: VolumeDocument): UserVolume => ({
  id: `s-${document.name}`,
  config: { ...partition(document, `s-${document.name}`, 'swap', { type: 'swapi' }), mount: folderMount({ target: '' }) },
  mount: { readOnly: false, disableAccessTime: false, secure: false },
})

const mountOptions = ({
  readOnly,
  disableAccessTime,
  secure,
}: { [K in keyof MountOptions]?: MountOptions[K] | undefined } = {}): MountOptions => ({
  readOnly: readOnly ?? false,
  disableAccessTime: disableAccessTime ?? false,
  secure: secure ?? true,
})

function forWorkloads(document: DocumentOf<typeof UserVolumeConfig>): UserVolume {
  const { name = '', volumeType = 'partition', filesystem, mount } = document
  const id = `u-${name}`
  const seen = {
    parentId: '/var/mnt',
    mount: { ...folderMount({ parent: folder, target: name, mode: 0o755 }), projectQuotaSupport: filesystem?.projectQuotaSupport ?? false },
  }
  if (volumeType === 'directory')
    return { id, config: { type: 'directory', provisioning: {}, locator: {}, ...seen }, mount: mountOptions(mount) }
  const made = { type: filesystem?.type ?? 'xfs', label: id }
  const config = volumeType === 'disk' ? wholeDisk(document, made) : partition(document, id, 'linux', made)
  return { id, config: { ...config, ...seen }, mount: mountOptions(mount) }
}

function partition(
  document: VolumeDocument,
  label: string,
  type: 'linux' | 'swap',
  filesystemSpec?: { type: string; label?: string },
): Config {
  const match = document.provisioning?.diskSelector?.match
  return {
    type: 'partition',
    provisioning: {
      wave: userWave,
      diskSelector: { match },
      partitionSpec: partitionSpec(label, provisioningOf(document.provisioning ?? {}, { minSize: usualMinSize, grow: false }), type),
      filesystemSpec: filesystemSpec ?? { type: 'none' },
    },
    ...encryptionOf(document.encryption),
    locator: { match: `volume.partition_label == "${label}"` },
  }
}

function wholeDisk(document: VolumeDocument, filesystemSpec: { type: string; label: string }): Config {
  const match = document.provisioning?.diskSelector?.match
  return {
    type: 'disk',
    provisioning: { wave: userWave, diskSelector: { match }, filesystemSpec },
    ...encryptionOf(document.encryption),
    locator: { diskMatch: match },
  }
}

function existing({ name = '', discovery, mount }: DocumentOf<typeof ExistingVolumeConfig>): UserVolume {
  return {
    id: `e-${name}`,
    config: {
      type: 'partition',
      provisioning: { wave: userWave },
      locator: { match: discovery?.volumeSelector?.match },
      parentId: '/var/mnt',
      mount: folderMount({ parent: folder, target: name }),
    },
    mount: mountOptions(mount),
  }
}

function external({ name = '', mount }: DocumentOf<typeof ExternalVolumeConfig>): UserVolume {
  const parameters = [{ type: 'string', name: 'source', string: mount?.virtiofs?.tag ?? '' }]
  return {
    id: `x-${name}`,
    config: {
      type: 'external',
      provisioning: { filesystemSpec: { type: 'virtiofs' } },
      locator: {},
      parentId: '/var/mnt',
      mount: { ...folderMount({ parent: folder, target: name }), parameters },
    },
    mount: mountOptions(mount),
  }
}
