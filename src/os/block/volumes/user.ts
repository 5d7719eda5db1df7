/** Volumes for workloads, as documents declare them. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { VolumeConfig } from '../resources/volume-config.ts'
import { encryptionOf, partitionSpec, provisioningOf, usualMinSize, type VolumeDocument } from './declaration.ts'
import { folderMount } from './folders.ts'

type Config = SpecOf<typeof VolumeConfig>

/** How a volume is to be mounted; those that are not mounted have none. */
export interface MountWish {
  readOnly: boolean
  disableAccessTime: boolean
  secure: boolean
}

/** A volume of a document: its id, what it is to be, and how it is mounted. */
export interface UserVolume {
  id: string
  config: Config
  mount?: MountWish
}

const folder = '/var/mnt'
const userWave = 0

/** The volume of a document. Its name with a letter in front is the label of its partition. */
export function userVolume(document: VolumeDocument): UserVolume | undefined {
  switch (document.kind) {
    case 'UserVolumeConfig':
      return forWorkloads(document)
    case 'RawVolumeConfig':
      return { id: `r-${document.name}`, config: partition(document, `r-${document.name}`, 'linux') }
    case 'SwapVolumeConfig':
      return {
        id: `s-${document.name}`,
        config: { ...partition(document, `s-${document.name}`, 'swap', { type: 'swapi' }), mount: folderMount({ target: '' }) },
        mount: { readOnly: false, disableAccessTime: false, secure: false },
      }
    case 'ExistingVolumeConfig':
      return existing(document)
    case 'ExternalVolumeConfig':
      return external(document)
    default:
      return undefined
  }
}

const wish = ({ readOnly, disableAccessTime, secure }: Partial<MountWish> = {}): MountWish => ({
  readOnly: readOnly ?? false,
  disableAccessTime: disableAccessTime ?? false,
  secure: secure ?? true,
})

function forWorkloads(document: VolumeDocument): UserVolume {
  const {
    name,
    volumeType = 'partition',
    filesystem,
    mount,
  } = document as VolumeDocument & {
    volumeType?: 'directory' | 'disk' | 'partition'
    filesystem?: { type?: string; projectQuotaSupport?: boolean }
    mount?: Partial<MountWish>
  }
  const id = `u-${name}`
  const seen = {
    parentId: '/var/mnt',
    mount: { ...folderMount({ parent: folder, target: name, mode: 0o755 }), projectQuotaSupport: filesystem?.projectQuotaSupport ?? false },
  }
  if (volumeType === 'directory') return { id, config: { type: 'directory', provisioning: {}, locator: {}, ...seen }, mount: wish(mount) }
  const made = { type: filesystem?.type ?? 'xfs', label: id }
  const config = volumeType === 'disk' ? wholeDisk(document, made) : partition(document, id, 'linux', made)
  return { id, config: { ...config, ...seen }, mount: wish(mount) }
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
    ...encryptionOf(document),
    locator: { match: `volume.partition_label == "${label}"` },
  }
}

function wholeDisk(document: VolumeDocument, filesystemSpec: { type: string; label: string }): Config {
  const match = document.provisioning?.diskSelector?.match
  return {
    type: 'disk',
    provisioning: { wave: userWave, diskSelector: { match }, filesystemSpec },
    ...encryptionOf(document),
    locator: { diskMatch: match },
  }
}

function existing(document: VolumeDocument): UserVolume {
  const { name, discovery, mount } = document as VolumeDocument & {
    discovery?: { volumeSelector?: { match?: string } }
    mount?: Partial<MountWish>
  }
  return {
    id: `e-${name}`,
    config: {
      type: 'partition',
      provisioning: { wave: userWave },
      locator: { match: discovery?.volumeSelector?.match },
      parentId: '/var/mnt',
      mount: folderMount({ parent: folder, target: name }),
    },
    mount: wish(mount),
  }
}

function external(document: VolumeDocument): UserVolume {
  const { name, mount } = document as VolumeDocument & { mount?: Partial<MountWish> & { virtiofs?: { tag?: string } } }
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
    mount: wish(mount),
  }
}
