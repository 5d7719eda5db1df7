/** The EFI system partition of the ISO: boot loader, unified kernel image and root, in a FAT file system. */
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { formatFat } from '../../../wire/fat/format.ts'
import { FatVolume } from '../../../wire/fat/volume.ts'
import { withDiskFile } from './disk-file.ts'

/** A file of the partition. */
export interface EfiFile {
  path: string
  content: Uint8Array
}

const sectorSize = 512
const perCluster = 4 // ISO 9660 counts in the same 2 KiB
const unit = sectorSize * perCluster
const leastClusters = 65_536 // FAT32 has so many

/** A file does not lie in one piece. */
export class EfiPartitionError extends Error {
  override name = 'EfiPartitionError'
}

/** Writes the partition to a file; returns its size and the offset of each file's data. Equal files give equal bytes. */
export async function makeEfiPartition(
  path: string,
  files: readonly EfiFile[],
  { label, serial }: { label: string; serial: number },
): Promise<{ size: number; offsets: Map<string, number> }> {
  const clusters = files.reduce((sum, { path: each, content }) => sum + Math.ceil(content.length / unit) + each.split('/').length, 64)
  const held = Math.max(clusters, leastClusters)
  const tableSectors = Math.ceil(((held + 2) * 4) / sectorSize / 4) * 4 + 4
  const size = (32 + 2 * tableSectors) * sectorSize + held * unit
  await withDiskFile(path, size, async (disk) => {
    await formatFat(disk, { label, serial, perCluster })
    const volume = await FatVolume.open(disk)
    for (const { path: each } of files) await volume.mkdirAll(dirname(each))
    for (const { path: each, content } of files) await volume.create(each, content)
  })
  const image = readFileSync(path)
  const offsets = new Map(files.map(({ path: each, content }) => [each, offsetOf(image, content, each)]))
  return { size, offsets }
}

function offsetOf(image: Buffer, content: Uint8Array, path: string): number {
  const first = content.subarray(0, unit)
  for (let at = image.indexOf(first); at >= 0; at = image.indexOf(first, at + 1))
    if (at % unit === 0 && image.subarray(at, at + content.length).equals(content)) return at
  throw new EfiPartitionError(`"${path}" does not lie in one piece on the EFI system partition`)
}
