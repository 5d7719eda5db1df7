/** The raw disk of a release that was made again: slot A holds the other one. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { DecodeError } from '../../../wire/decode-error.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { FatError } from '../../../wire/fat/fat-error.ts'
import { FatVolume } from '../../../wire/fat/volume.ts'
import { diskFile, entries, partitionsOf, sectorSize, slotFile, withArguments } from '../build/disk.ts'
import { withFile } from '../build/read-file.ts'
import { writeFile } from '../build/write-file.ts'
import { FactoryError } from '../factory-error.ts'
import { diskOn } from '../release/disk-file.ts'
import { fileNameOf, type Release } from '../releases.ts'
import { rootName } from '../root/verity.ts'
import type { Remade } from './remade.ts'

const textLimit = 64 << 10

/** Writes the disk into the folder. Throws FactoryError. */
export async function remakeDisk(release: Release, remade: Remade, folder: string, signal: AbortSignal): Promise<void> {
  const to = join(folder, fileNameOf(release, diskFile))
  const partition = await withFile(release, diskFile, async ({ path, size, read }) => {
    const partitions = await partitionsOf(read, size)
    await writeFile(to, [{ file: path, offset: 0, length: size }], signal)
    const named = (label: string) => partitions.find(({ name }) => name === label)
    return named('BOOT') ?? named('EFI')
  })
  if (!partition) throw new FactoryError(500, `"${diskFile}" of the release has no boot partition`)
  const file = await open(to, 'r+')
  try {
    const start = partition.first * sectorSize
    const volume = await FatVolume.open(diskOn(file, start, (partition.last - partition.first + 1) * sectorSize))
    await changeSlot(volume, remade)
  } catch (error) {
    if (error instanceof DecodeError || error instanceof FatError)
      throw new FactoryError(500, `"${diskFile}" of the release: ${messageOf(error)}`)
    throw error
  } finally {
    await file.close()
  }
}

async function changeSlot(volume: FatVolume, remade: Remade): Promise<void> {
  const { before, after } = remade
  const bios = await volume.has(slotFile)
  const [entry] = bios
    ? [slotFile]
    : (await volume.list(entries)).filter(({ name }) => /^ichor-\d+-a\.conf$/i.test(name)).map(({ name }) => `${entries}/${name}`)
  if (entry === undefined) throw new FactoryError(500, `"${diskFile}" of the release has no release in slot A`)
  const old = Buffer.from(await volume.read(entry, textLimit)).toString()
  const kernel = (hash: string) => `/EFI/ichor/${hash.slice(0, 16)}.efi`
  let text = old
  for (const key of ['rootHash', 'image', 'kernel'] as const) text = text.replaceAll(before[key], after[key])
  if (remade.line !== remade.base) text = withArguments(text, entry, remade.base, remade.line)
  if (!old.includes(before.rootHash) || !old.includes(before.image))
    throw new FactoryError(500, `slot A of "${diskFile}" holds another build`)
  const root = rootName(remade.verity)
  // The old ones go first: the partition need not hold both.
  await volume.remove(`/ichor/${before.rootHash.slice(0, 16)}.sqsh`)
  await volume.create(`/ichor/${root}`, Bun.file(remade.rootPath).stream(), remade.verity.blocks * 4096)
  if (bios) await volume.replace('/a/initramfs.xz', remade.initramfs)
  else {
    await volume.remove(kernel(before.kernel))
    await volume.create(kernel(after.kernel), remade.uki)
  }
  await volume.replace(entry, Buffer.from(text))
}
