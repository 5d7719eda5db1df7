/**
 * A raw disk of a release with another command line. As on an installed machine the arguments are in the boot entry of slot A, or in
 * its file for GRUB; the release that the slot holds stays, so that no signature covers them.
 */
import type { Segment } from '../../../oci/image.ts'
import { grubWords } from '../../../oci/kernel-command-line.ts'
import { patchSegments } from '../../../oci/segments.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { FatVolume } from '../../../wire/fat/volume.ts'
import { type GptTable, readTable } from '../../../wire/gpt/table.ts'
import { metaCapacity, metaCopySize, metaSize, writeMeta } from '../../../wire/meta.ts'
import { viewOf } from '../../../wire/probe/view.ts'
import type { ReadAt } from '../../../wire/tar/read.ts'
import { FactoryError } from '../factory-error.ts'
import type { Release } from '../releases.ts'
import { Overlay, stretchOf } from './overlay.ts'
import { withFile } from './read-file.ts'

/** The raw disk of a release. */
export const diskFile = 'ichor-amd64.raw'
/** Bytes of a sector. */
export const sectorSize = 512
const tableSize = 34 * sectorSize
/** The entries of systemd-boot. */
export const entries = '/loader/entries'
/** What GRUB starts of slot A. */
export const slotFile = '/a/slot.cfg'

/** What a disk has another of: a command line in place of that of the release, and values of META by tag. */
export interface DiskOrder {
  readonly base: string
  readonly line: string
  readonly meta: readonly { readonly key: number; readonly value: string }[]
}

/** The bytes of the disk; `base` is the command line of the release. Throws FactoryError. */
export async function diskSegments(release: Release, { base, line, meta }: DiskOrder): Promise<Segment[]> {
  return withFile(release, diskFile, async ({ path, size, read }) => {
    const overlay = new Overlay(read, size)
    try {
      const partitions = await partitionsOf(read, size)
      const named = (label: string) => partitions.find(({ name }) => name === label)
      if (meta.length > 0) await giveMeta(overlay, named('META'), meta)
      // A disk for BIOS has an empty partition EFI, too.
      const boot = named('BOOT') ?? named('EFI')
      if (!boot) throw new FactoryError(500, `"${diskFile}" of the release has no boot partition`)
      const volume = await FatVolume.open(stretchOf(overlay, boot.first * sectorSize, (boot.last - boot.first + 1) * sectorSize))
      if (line !== base) await changeArguments(volume, base, line)
    } catch (error) {
      if (error instanceof DecodeError) throw new FactoryError(500, `"${diskFile}" of the release: ${messageOf(error)}`)
      throw error
    }
    return patchSegments([{ file: path, offset: 0, length: size }], overlay.patches)
  })
}

/** The partitions of a disk. Throws DecodeError. */
export async function partitionsOf(read: ReadAt, size: number): Promise<GptTable['partitions']> {
  const length = Math.min(size, tableSize)
  const stretches = await Promise.all([0, size - length].map(async (offset) => ({ offset, bytes: await read(offset, length) })))
  return readTable(viewOf(size, stretches), sectorSize).partitions
}

/** What starts the raw disk of a release. Throws FactoryError. */
export const firmwareOf = (release: Release): Promise<'uefi' | 'bios'> =>
  withFile(release, diskFile, async ({ size, read }) => {
    const partitions = await partitionsOf(read, size)
    return partitions.some(({ name }) => name === 'BOOT') ? 'bios' : 'uefi'
  })

/** Both copies of the values, as a machine writes them. */
async function giveMeta(disk: Overlay, partition: { first: number } | undefined, meta: DiskOrder['meta']): Promise<void> {
  if (!partition) throw new FactoryError(500, `"${diskFile}" of the release has no partition META`)
  const values = new Map(meta.map(({ key, value }) => [key, Buffer.from(value)]))
  if (metaSize(values) > metaCapacity) throw new FactoryError(400, `META holds ${metaCapacity} bytes of values`)
  const bytes = writeMeta(values)
  for (const copy of [0, metaCopySize]) await disk.write(partition.first * sectorSize + copy, bytes)
}

async function changeArguments(volume: FatVolume, base: string, line: string): Promise<void> {
  const found = (await volume.list(entries)).filter(({ name }) => /^ichor-\d+-a\.conf$/i.test(name)).map(({ name }) => `${entries}/${name}`)
  const files = (await volume.has(slotFile)) ? [slotFile] : found
  let changed = 0
  for (const file of files) {
    const text = Buffer.from(await volume.read(file, 64 << 10)).toString()
    const replaced = withArguments(text, file, base, line)
    if (replaced === text) continue
    await volume.replace(file, Buffer.from(replaced))
    changed++
  }
  if (changed === 0) throw new FactoryError(500, `"${diskFile}" of the release does not start its command line`)
}

/** The text of a boot entry with another command line. */
export const withArguments = (text: string, file: string, base: string, line: string): string =>
  file === slotFile
    ? text.replace(` ${grubWords(base)} `, () => ` ${grubWords(line)} `)
    : text.replace(`\noptions ${base} `, () => `\noptions ${line} `)
