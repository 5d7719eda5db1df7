/** The system volumes, as the field defines them. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { VolumeConfig } from '../resources/volume-config.ts'
import { gibibyte, mebibyte } from '../sizes.ts'
import { encryptionOf, type Provisioning, partitionSpec, provisioningOf, type SystemVolumes } from './declaration.ts'
import { folderMount, folders, overlays, run } from './folders.ts'

type Config = SpecOf<typeof VolumeConfig>

/** System volumes are provisioned before all others. */
const systemWave = -1
const onSystemDisk = (label: string) => `volume.partition_label == "${label}" && system_disk`
const nowhere = { provisioning: {}, locator: {} }

/** META: located, never provisioned here. Its presence marks an installed machine. */
export const metaVolume: Config = {
  type: 'partition',
  provisioning: { wave: systemWave },
  locator: { match: 'volume.partition_label == "META" && system_disk' },
}

/**
 * STATE: only located until a configuration declares it, so that a machine with a foreign disk changes nothing. Without a file
 * system it counts as missing.
 */
export function stateVolume(declared: SystemVolumes | undefined, encryption: Pick<Config, 'encryption'>): Config {
  return {
    type: 'partition',
    provisioning: declared
      ? systemPartition('STATE', { minSize: 100 * mebibyte, maxSize: 100 * mebibyte, grow: false })
      : { wave: systemWave },
    ...encryption,
    locator: { match: declared ? onSystemDisk('STATE') : `${onSystemDisk('STATE')} && volume.name != ""` },
    mount: folderMount({ target: '/system/state', mode: 0o700 }, 'system_u:object_r:system_state_t:s0'),
  }
}

/** EPHEMERAL: the remaining space of the system disk, or the configured location. */
export function ephemeralVolume(declared: SystemVolumes, projectQuotaSupport: boolean, encryption: Pick<Config, 'encryption'>): Config {
  const document = declared.get('EPHEMERAL')
  const given = document?.provisioning
  const usual = systemPartition('EPHEMERAL', { minSize: 2 * gibibyte, grow: true })
  const match = given?.diskSelector?.match
  return {
    type: 'partition',
    provisioning: {
      ...usual,
      ...(match && { diskSelector: { match } }),
      ...(given && { partitionSpec: partitionSpec('EPHEMERAL', provisioningOf(given, { minSize: 2 * gibibyte, grow: true })) }),
    },
    ...encryption,
    // With a custom selector it may be on any disk, but never on a former system disk.
    locator: { match: match ? 'volume.partition_label == "EPHEMERAL"' : onSystemDisk('EPHEMERAL'), ...(match && { diskMatch: match }) },
    mount: { ...folderMount({ target: '/var', mode: 0o755 }), projectQuotaSupport },
  }
}

/** The images that came with the machine, on the medium that it was installed from and on its own disk. */
export const imageCacheIds = { medium: 'IMAGECACHE-ISO', disk: 'IMAGECACHE' } as const

/** A medium with images. Its own label is that of `./mkimage.sh`; `TALOS_…` is that of the field's imager. */
export const imageCacheMedium: Config = {
  type: 'disk',
  provisioning: {},
  locator: {
    match: '(volume.name == "iso9660" || volume.name == "vfat") && (volume.label == "ICHOR" || volume.label.startsWith("TALOS_"))',
  },
  mount: folderMount({ target: '/system/imagecache/iso', mode: 0o700 }),
}

/** IMAGECACHE: created only for a document; without one, that of a disk image is located. */
export function imageCacheVolume(declared: SystemVolumes): Config {
  const document = declared.get(imageCacheIds.disk)
  const match = document?.provisioning?.diskSelector?.match
  return {
    type: 'partition',
    provisioning: document ? imageCachePartition(document.provisioning ?? {}, match) : { wave: systemWave },
    ...encryptionOf(document?.encryption),
    locator: { match: match ? 'volume.partition_label == "IMAGECACHE"' : onSystemDisk('IMAGECACHE'), ...(match && { diskMatch: match }) },
    mount: folderMount({ target: '/system/imagecache/disk', mode: 0o700 }),
  }
}

function imageCachePartition(given: Provisioning, match: string | undefined): Config['provisioning'] {
  const sizes = provisioningOf(given, { minSize: 500 * mebibyte, grow: false })
  const maxSize = given.maxSize === undefined ? { maxSize: Math.max(gibibyte, sizes.minSize) } : {}
  return {
    wave: systemWave,
    diskSelector: { match: match ?? 'system_disk' },
    partitionSpec: partitionSpec('IMAGECACHE', { ...sizes, ...maxSize }),
    filesystemSpec: { type: 'ext4', label: 'IMAGECACHE' },
  }
}

function systemPartition(label: string, sizes: { minSize: number; maxSize?: number; grow: boolean }): Config['provisioning'] {
  return {
    wave: systemWave,
    diskSelector: { match: 'system_disk' },
    partitionSpec: partitionSpec(label, sizes),
    filesystemSpec: { type: 'xfs', label },
  }
}

/** Directories, links and overlays that depend on EPHEMERAL, by id, parents first. */
export function dependentVolumes(): [string, Config][] {
  return [
    ...Object.entries(folders).map(([id, folder]): [string, Config] => [
      id,
      { type: 'directory', ...(folder.parent && { parentId: folder.parent }), ...nowhere, mount: folderMount(folder) },
    ]),
    [
      run.link,
      {
        type: 'symlink',
        parentId: 'EPHEMERAL',
        ...nowhere,
        mount: folderMount({ target: run.link }),
        symlink: { symlinkTargetPath: run.to, force: true },
      },
    ],
    [
      run.lock,
      { type: 'directory', parentId: run.link, ...nowhere, mount: folderMount({ parent: run.link, target: 'lock', mode: run.lockMode }) },
    ],
    ...overlays.map((path): [string, Config] => [
      path,
      { type: 'overlay', parentId: 'EPHEMERAL', ...nowhere, mount: folderMount({ parent: 'EPHEMERAL', target: path }) },
    ]),
  ]
}
