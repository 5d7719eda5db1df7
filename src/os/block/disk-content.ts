import type { Probed } from '../../wire/probe/probe.ts'
import type { Content } from './device.ts'
import { prettySize } from './sizes.ts'

/** The content of a disk. */
export type DiskContent = Pick<Content, 'found'>

/** Describes the content of a disk in a few words. */
export function describeContent({ found }: DiskContent): string {
  if (!found) return 'nothing'
  if (!found.table) return named(found)
  const { partitions, sectorSize } = found.table
  if (partitions.length === 0) return 'an empty partition table'
  const shown = partitions
    .slice(0, 12)
    .map(({ index, name, first, last }) => `${name || index} ${prettySize((last + 1 - first) * sectorSize)}`)
  const more = partitions.length - shown.length
  return `partitions ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function named({ name, label }: Probed): string {
  const what = name === 'gpt' ? 'an unreadable partition table' : name === 'mbr' ? 'a partition table (MBR)' : name
  return label ? `${what} "${label}"` : what
}
