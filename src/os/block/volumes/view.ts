/** The machine's disks and discovered volumes, in which volumes are located. */
import type { Resource, SpecOf } from '../../../cosi/resource.ts'
import { diskCondition, volumeCondition } from '../documents/expression.ts'
import type { DiscoveredVolume } from '../resources/discovered-volume.ts'
import type { Disk } from '../resources/disk.ts'
import type { VolumeConfig } from '../resources/volume-config.ts'

/** The spec of a volume. */
export type Config = SpecOf<typeof VolumeConfig>

/** All discovered disks and volumes. */
export interface Found {
  disks: readonly Resource<SpecOf<typeof Disk>>[]
  volumes: readonly Resource<SpecOf<typeof DiscoveredVolume>>[]
  /** Id of the system disk. */
  system?: string | undefined
}

/** True for a loop device. */
export const isLoop = (id: string): boolean => /^loop\d/.test(id)

/** Devices of other programs and mappings of other devices, which a selector matches only if it mentions them. */
const derived = [/^loop\d/, /^dm-\d/]
const words = ['loop', 'dm-']

const isMeant = (id: string, match: string): boolean => derived.every((kind, index) => !kind.test(id) || match.includes(words[index] ?? id))

/** Id of the disk with the system's partitions, identified by a partition labelled META. If several disks have one, the one with META content counts. */
export function systemDiskOf(volumes: Found['volumes']): string | undefined {
  const found = volumes.filter(({ spec }) => spec.partition_label === 'META' && spec.parent)
  return (found.find(({ spec }) => spec.name === 'talosmeta') ?? found[0])?.spec.parent
}

/**
 * Disks that a selector matches, ordered by name. Read-only disks never match. Loop devices and mappings match only an
 * expression that mentions them.
 */
export function pickDisks({ disks, system }: Found, match: string | undefined): Found['disks'] {
  if (!match) return []
  const picks = diskCondition(match)
  return disks
    .filter(({ metadata, spec }) => !spec.readonly && !spec.cdrom && (metadata.id === system || isMeant(metadata.id, match)))
    .filter(({ metadata, spec }) => picks({ disk: spec, systemDisk: metadata.id === system }))
    .sort((a, b) => (a.metadata.id < b.metadata.id ? -1 : 1))
}

/** True for a disk that is only found by what is on it and may be taken out at any time. */
export const isMedium = ({ type, locator }: Config): boolean => type === 'disk' && locator.match !== undefined

/** The existing volume. If several match, the one located before is taken, else the one on the first disk. */
export function locate(config: Config, found: Found, before?: string): Found['volumes'][number] | undefined {
  if (config.type === 'disk' && !isMedium(config)) return wholeDisk(config, found, before)
  const { match, diskMatch } = config.locator
  if (!match) return undefined
  const picks = volumeCondition(match)
  const picksDisk = diskMatch ? diskCondition(diskMatch) : undefined
  const fitting = [...found.volumes]
    .sort((a, b) => (a.metadata.id < b.metadata.id ? -1 : 1))
    .filter(({ metadata, spec }) => {
      const on = spec.parent ?? metadata.id
      const disk = found.disks.find((each) => each.metadata.id === on)
      if (!disk) return false
      const subject = { disk: disk.spec, volume: spec, systemDisk: on === found.system }
      return picks(subject) && (!picksDisk || picksDisk(subject))
    })
  return fitting.find(({ spec }) => spec.dev_path === before) ?? fitting[0]
}

/**
 * Among the matching disks, the one with the volume's label, else an empty one: device names change between boots. An encrypted disk
 * shows no label.
 */
function wholeDisk({ locator, provisioning, encryption }: Config, found: Found, before?: string): Found['volumes'][number] | undefined {
  const label = provisioning.filesystemSpec?.label?.slice(0, shortestLabel)
  const picked = pickDisks(found, locator.diskMatch)
  const volumes = picked.flatMap(({ metadata }) => found.volumes.filter((volume) => volume.metadata.id === metadata.id))
  const labelled = volumes.filter(({ spec }) =>
    encryption ? spec.name === 'luks' : label && spec.label?.slice(0, shortestLabel) === label,
  )
  return labelled.find(({ spec }) => spec.dev_path === before) ?? labelled[0] ?? volumes.find(({ spec }) => !spec.name) ?? volumes[0]
}

/** Shortest maximum label length of all file systems. */
const shortestLabel = 12
