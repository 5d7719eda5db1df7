/**
 * Renews GRUB itself. A BIOS knows no start that is taken once, so a new GRUB waits on BOOT until its release is good; a release that
 * fails changes nothing here. The new core is then written to the half of the BIOS partition that is not in use, and compared there.
 * The change is the write of one sector, the master boot record, which starts one half or the other. The old core stays in its half.
 */
import type { BlockAccess } from '../../../wire/fat/block-access.ts'
import type { FatVolume } from '../../../wire/fat/volume.ts'
import { grubFolder } from './grub-config.ts'
import { coreHalves, coreLength, GrubCoreError, grubBlocks, halfInUse, type Place } from './grub-core.ts'
import { type BootFile, type BootState, checked, filesIn, type LoaderRenewal, type Renewal, type SlotRelease } from './slot.ts'

/** GRUB's files in a release. */
export const grubFiles = ['grub/boot.img', 'grub/core.img'] as const

const recordSize = 512

/** The disk around the BOOT partition. */
export interface GrubDisk {
  /** The BIOS partition. */
  readonly home: Place
  /** Runs with the disk open. */
  onDisk<T>(run: (disk: Pick<BlockAccess, 'read' | 'write' | 'flush'>) => Promise<T>, write: boolean): Promise<T>
  /** Runs with the BIOS partition open. What is read then comes from the medium. */
  onHome<T>(run: (home: Pick<BlockAccess, 'read' | 'write' | 'flush'>) => Promise<T>, write: boolean): Promise<T>
}

/** A GRUB that waits on BOOT: boot.img, then core.img, in one file, which is there completely or not at all. */
interface Staged extends BootFile {
  /** The release that brought it. */
  readonly image: string
  /** First 16 digits of the SHA-256 of what the file holds. */
  readonly digest: string
}

const trialFolder = `${grubFolder}/trial`

/** The GRUB of a release, as one piece, if it is another than the one in use. */
export async function newGrub(disk: GrubDisk, release: SlotRelease): Promise<Uint8Array | undefined> {
  const [boot, core] = grubFiles.map((name) => release.size(name)) as [number, number]
  if (boot !== recordSize || core <= recordSize) return undefined // nothing that a BIOS could start
  const parts: Uint8Array[] = []
  for (const name of grubFiles) for await (const part of checked(release, name)) parts.push(part)
  const content = Buffer.concat(parts)
  const used = await inUse(disk)
  return used && (await holds(disk, used, content)) ? undefined : content
}

/** Puts it on BOOT. */
export async function stageGrub(volume: FatVolume, { image }: Pick<SlotRelease, 'image'>, content: Uint8Array): Promise<void> {
  await volume.mkdirAll(trialFolder)
  await volume.create(`${trialFolder}/${image}-${digestOf(content)}.img`, content)
}

/** What was put there. */
export const stagedGrubs = (volume: FatVolume): Promise<BootFile[]> => filesIn(volume, trialFolder)

/** Removes what was put there. */
export async function dropGrub(volume: FatVolume): Promise<void> {
  for (const { path } of await stagedGrubs(volume)) await volume.remove(path)
}

/** The renewal on a disk with a BIOS partition. */
export const grubRenewal = (volume: FatVolume, disk: GrubDisk, state: () => Promise<BootState>): LoaderRenewal => ({
  async try() {}, // a BIOS cannot start it once

  async settle() {
    const staged = await stagedIn(volume)
    if (!staged) return undefined
    const { slots, good } = await state()
    const isGood = good !== undefined && slots[good]?.image === staged.image
    // A release that was written may still be started.
    if (!isGood && Object.values(slots).some(({ image }) => image === staged.image)) return 'waiting'
    const renewal = isGood ? await renew(volume, disk, staged) : undefined
    await dropGrub(volume)
    return renewal
  },
})

async function renew(volume: FatVolume, disk: GrubDisk, { path, size, digest }: Staged): Promise<Renewal> {
  if (size > disk.home.size) return 'no-room'
  const content = await volume.read(path)
  if (digestOf(content) !== digest) return 'damaged'
  const used = await inUse(disk)
  if (!used) return 'foreign'
  // A power cut may have come between the change and the removal of the file.
  if (await holds(disk, used, content)) return 'renewed'
  const [first, second] = coreHalves(disk.home)
  const free = used.half.offset === first.offset ? second : first
  const [boot, core] = filesOf(content)
  if (used.length > used.half.size || core.length > free.size) return 'no-room'
  const [image, record] = grubBlocks(boot, core, free)
  const at = image.offset - disk.home.offset
  await disk.onHome(async (home) => {
    await home.write(at, image.bytes)
    await home.flush()
  }, true)
  const read = await disk.onHome((home) => home.read(at, image.bytes.length), false)
  if (Buffer.compare(read, image.bytes) !== 0) throw new GrubCoreError('the BIOS partition does not hold what was written to it')
  await disk.onDisk(async (whole) => {
    await whole.write(record.offset, record.bytes)
    await whole.flush()
  }, true)
  return 'renewed'
}

/** The core that the disk starts. */
interface Used {
  readonly half: Place
  /** Of the core in it, in whole sectors. */
  readonly length: number
  readonly record: Uint8Array
}

/** Undefined if the disk starts something else. */
async function inUse(disk: GrubDisk): Promise<Used | undefined> {
  const record = await disk.onDisk((whole) => whole.read(0, recordSize), false)
  const half = halfInUse(record, coreHalves(disk.home))
  if (!half) return undefined
  const first = await disk.onHome((home) => home.read(half.offset - disk.home.offset, recordSize), false)
  const length = coreLength(first, half)
  return length === undefined || half.offset + length > disk.home.offset + disk.home.size ? undefined : { half, length, record }
}

/** Whether it is exactly this GRUB. */
async function holds(disk: GrubDisk, { half, length, record }: Used, content: Uint8Array): Promise<boolean> {
  const [boot, core] = filesOf(content)
  if (core.length > length || core.length <= length - recordSize) return false
  const [image, code] = grubBlocks(boot, core, { offset: half.offset, size: length })
  if (Buffer.compare(record.subarray(0, code.bytes.length), code.bytes) !== 0) return false
  const read = await disk.onHome((home) => home.read(half.offset - disk.home.offset, length), false)
  return Buffer.compare(read, image.bytes) === 0
}

/** boot.img has one sector. */
const filesOf = (content: Uint8Array) => [content.subarray(0, recordSize), content.subarray(recordSize)] as const

const digestOf = (bytes: Uint8Array) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex').slice(0, 16)

async function stagedIn(volume: FatVolume): Promise<Staged | undefined> {
  for (const file of await stagedGrubs(volume)) {
    const [, image, digest] = /\/([0-9a-f]{16})-([0-9a-f]{16})\.img$/.exec(file.path.toLowerCase()) ?? []
    if (image && digest) return { ...file, image, digest }
  }
  return undefined
}
