/** The ISO of a release that was made again: another EFI system partition at its end, and what leads into that. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { patchSegments } from '../../../oci/segments.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { FatVolume } from '../../../wire/fat/volume.ts'
import { bothOrders, type IsoPlace, readIsoFiles, replaceIsoFile } from '../../../wire/iso9660/files.ts'
import type { ReadAt } from '../../../wire/tar/read.ts'
import type { Patch } from '../build/derived.ts'
import { changedMenu, isoFile, menuFile } from '../build/iso.ts'
import { Overlay } from '../build/overlay.ts'
import { withFile } from '../build/read-file.ts'
import { writeFile } from '../build/write-file.ts'
import { FactoryError } from '../factory-error.ts'
import { type EfiFile, makeEfiPartition } from '../release/efi-partition.ts'
import { fileNameOf, installFolderOf, type Release } from '../releases.ts'
import { rootName } from '../root/verity.ts'
import type { Remade } from './remade.ts'

const sector = 2048
const diskSector = 512
/** In the boot sector of sticks: the entry of the whole image, and that of the EFI system partition. */
const [wholeEntry, efiEntry] = [0x1be, 0x1ce]
const volumeSize = 16 * sector + 80
const fileLimit = 256 << 20

/** Writes the ISO into the folder. Throws FactoryError. */
export async function remakeIso(release: Release, remade: Remade, folder: string, signal: AbortSignal): Promise<void> {
  const partition = join(folder, '.efi')
  try {
    await withFile(release, isoFile, async ({ path, size, read }) => {
      const head = Buffer.from(await read(0, diskSector))
      const start = head.readUInt32LE(efiEntry + 8) * diskSector
      if (start === 0 || start >= size || start % sector !== 0)
        throw new FactoryError(500, `"${isoFile}" of the release has no EFI system partition`)
      const contents = efiContents(await efiFiles((offset, length) => read(start + offset, length), size - start), remade)
      const serial = Number.parseInt(remade.verity.rootHash.slice(16, 24), 16)
      const made = await makeEfiPartition(partition, contents, { label: 'ICHOR', serial })
      const installFolder = `${installFolderOf(release)}/`
      const patches = headPatches(await readIsoFiles(read, size), remade, { start, ...made, read, head, installFolder })
      const segments = [
        ...patchSegments([{ file: path, offset: 0, length: start }], await patches),
        { file: partition, offset: 0, length: made.size },
      ]
      await writeFile(join(folder, fileNameOf(release, isoFile)), segments, signal)
    })
  } catch (error) {
    if (error instanceof DecodeError || error instanceof RangeError)
      throw new FactoryError(500, `"${isoFile}" of the release: ${messageOf(error)}`)
    throw error
  } finally {
    rmSync(partition, { force: true })
  }
}

/** The files of an EFI system partition. */
async function efiFiles(read: ReadAt, size: number): Promise<EfiFile[]> {
  const volume = await FatVolume.open(new Overlay(read, size))
  const found: EfiFile[] = []
  const folders = ['']
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const { name, directory } of await volume.list(folder === '' ? '/' : folder)) {
      const path = `${folder}/${name}`
      if (directory) folders.push(path)
      // The root is another one, and large.
      else found.push({ path: path.slice(1), content: path.endsWith('.sqsh') ? new Uint8Array(0) : await volume.read(path, fileLimit) })
    }
  }
  return found
}

const isRoot = (path: string) => /^ichor\/[0-9a-f]{16}\.sqsh$/i.test(path)
const isKernel = (path: string) => /^efi\/linux\/[^/]+\.efi$/i.test(path)
const isLoader = (path: string) => /^efi\/boot\/boot(?:x64|aa64)\.efi$/i.test(path)

function efiContents(files: readonly EfiFile[], { verity, uki, rootPath }: Remade): EfiFile[] {
  if (!files.some(({ path }) => isRoot(path)) || !files.some(({ path }) => isKernel(path)) || !files.some(({ path }) => isLoader(path)))
    throw new FactoryError(500, `the EFI system partition of "${isoFile}" has no root, kernel image or boot loader`)
  return files.map(({ path, content }) => {
    if (isRoot(path)) return { path: `ichor/${rootName(verity)}`, content: Bun.mmap(rootPath) }
    return { path, content: isKernel(path) ? uki : content }
  })
}

interface Place {
  readonly start: number
  readonly size: number
  readonly offsets: ReadonlyMap<string, number>
  readonly read: ReadAt
  readonly head: Buffer
  readonly installFolder: string
}

/** What differs before the EFI system partition. */
async function headPatches(
  files: ReadonlyMap<string, IsoPlace>,
  remade: Remade,
  { start, size, offsets, read, head, installFolder }: Place,
): Promise<Patch[]> {
  const inEfi = (is: (path: string) => boolean) => [...offsets].find(([path]) => is(path))?.[1] ?? 0
  const kernel = inEfi(isKernel)
  const within = (content: Buffer) => kernel + remade.uki.indexOf(content)
  const shared: Record<string, { offset: number; size: number }> = {
    'root.sqsh': { offset: inEfi(isRoot), size: remade.verity.blocks * 4096 },
    'vmlinuz.efi': { offset: kernel, size: remade.uki.length },
    'initramfs.xz': { offset: within(remade.initramfs), size: remade.initramfs.length },
    vmlinuz: { offset: within(remade.kernel), size: remade.kernel.length },
    'systemd-boot.efi': { offset: inEfi(isLoader), size: files.get(`${installFolder}systemd-boot.efi`)?.size ?? 0 },
  }
  const patches: Patch[] = []
  for (const [path, place] of files) {
    if (isRoot(path))
      patches.push({ offset: place.sizeOffset + 23, bytes: Buffer.from(rootName(remade.verity).toUpperCase().slice(0, 16)) })
    const name = isRoot(path) ? 'root.sqsh' : path.slice(installFolder.length)
    const content = path.startsWith(installFolder) ? remade.documents.get(name) : undefined
    if (place.offset >= start) {
      const lies = shared[name]
      if (!lies || lies.offset % sector !== 0 || (!isRoot(path) && !path.startsWith(installFolder)))
        throw new RangeError(`"${path}" has no place`)
      patches.push({
        offset: place.sizeOffset - 8,
        bytes: Buffer.concat([bothOrders((start + lies.offset) / sector), bothOrders(lies.size)]),
      })
    } else if (content) patches.push(...replaceIsoFile(place, content))
    else if (path === menuFile && remade.line !== remade.base) {
      const menu = Buffer.from(await read(place.offset, place.size)).toString()
      patches.push(...replaceIsoFile(place, Buffer.from(changedMenu(menu, `  linux /${installFolder}vmlinuz`, remade))))
    } else if (/\/(?:root\.sqsh|vmlinuz\.efi|initramfs\.xz)$/.test(path))
      throw new RangeError(`"${path}" lies before the EFI system partition`)
  }
  return [...patches, { offset: volumeSize, bytes: bothOrders((start + size) / sector) }, ...bootSector(head, start, size)]
}

function bootSector(head: Buffer, start: number, size: number): Patch[] {
  const changed = Buffer.from(head)
  changed.writeUInt32LE(size / diskSector, efiEntry + 12)
  if (changed[wholeEntry] === 0x80) changed.writeUInt32LE((start + size) / diskSector, wholeEntry + 12)
  return [{ offset: 0, bytes: changed }]
}
