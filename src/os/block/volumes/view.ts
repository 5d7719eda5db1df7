/** The machine's disks and what was found on them, as the volumes are looked for. */
import type { Resource, SpecOf } from '../../../cosi/resource.ts'
import { diskCondition, volumeCondition } from '../documents/expression.ts'
import type { DiscoveredVolume } from '../resources/discovered-volume.ts'
import type { Disk } from '../resources/disk.ts'
import type { VolumeConfig } from '../resources/volume-config.ts'

/** What a volume is to be. */
export type Config = SpecOf<typeof VolumeConfig>

/** Everything that was found. */
export interface Found {
  disks: readonly Resource<SpecOf<typeof Disk>>[]
  volumes: readonly Resource<SpecOf<typeof DiscoveredVolume>>[]
  /** Id of the system disk. */
  system?: string
}

/** A file that stands for a disk. */
export const isLoop = (id: string): boolean => /^loop\d/.test(id)

/** Id of the disk that holds the machine's own partitions, told by the one named META; of several the one where META was written counts. */
export function systemDiskOf(volumes: Found['volumes']): string | undefined {
  const found = volumes.filter(({ spec }) => spec.partition_label === 'META' && spec.parent)
  return (found.find(({ spec }) => spec.name === 'talosmeta') ?? found[0])?.spec.parent
}

/**
 * Disks that a selector picks, in the order of their names. Those that cannot be written to are never picked; loop devices
 * belong to whoever made them, and are picked only by an expression that speaks of them.
 */
export function pickDisks({ disks, system }: Found, match: string | undefined): Found['disks'] {
  if (!match) return []
  const picks = diskCondition(match)
  return disks
    .filter(
      ({ metadata, spec }) => !spec.readonly && !spec.cdrom && (metadata.id === system || !isLoop(metadata.id) || match.includes('loop')),
    )
    .filter(({ metadata, spec }) => picks({ disk: spec, systemDisk: metadata.id === system }))
    .sort((a, b) => (a.metadata.id < b.metadata.id ? -1 : 1))
}

/** The volume that is there already; of several the one in the place where it was found before, else the one on the first disk. */
export function locate(config: Config, found: Found, before?: string): Found['volumes'][number] | undefined {
  if (config.type === 'disk') return wholeDisk(config, found, before)
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

/** Of the disks a selector picks the one with the volume's label, else one that is empty: names of disks change from start to start. */
function wholeDisk({ locator, provisioning }: Config, found: Found, before?: string): Found['volumes'][number] | undefined {
  const label = provisioning.filesystemSpec?.label?.slice(0, shortestLabel)
  const picked = pickDisks(found, locator.diskMatch)
  const volumes = picked.flatMap(({ metadata }) => found.volumes.filter((volume) => volume.metadata.id === metadata.id))
  const labelled = volumes.filter(({ spec }) => label && spec.label?.slice(0, shortestLabel) === label)
  return labelled.find(({ spec }) => spec.dev_path === before) ?? labelled[0] ?? volumes.find(({ spec }) => !spec.name) ?? volumes[0]
}

/** What every file system has room for. */
const shortestLabel = 12
