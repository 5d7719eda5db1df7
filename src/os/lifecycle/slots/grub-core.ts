/**
 * GRUB for BIOS: boot.img in the master boot record, core.img in one half of the BIOS partition, the first one after an
 * installation. Both contain the locations of the next stage, which are filled in here at the offsets of
 * grub-core/boot/i386/pc/{boot,diskboot}.S.
 */

/** Offsets in boot.img. */
const place = { kernelSector: 0x5c, driveCheck: 0x66, bootCodeEnd: 440 } as const
/** The first block list, at the end of the first sector of core.img: start, count, segment. Further ones lie before it; a count of 0 ends them. */
const firstList = 512 - 12
const secondCount = firstList - 12 + 8
/** Load segment of the remaining core: its first sector runs at 0x8000. */
const loadSegment = 0x820

const sector = 512

/** GRUB's files are invalid or do not fit. */
export class GrubCoreError extends Error {
  override name = 'GrubCoreError'
}

/** A part of the disk, in bytes. */
export interface Place {
  readonly offset: number
  readonly size: number
}

/** Bytes to write, and where on the disk. */
export interface GrubBlock {
  readonly offset: number
  readonly bytes: Uint8Array
}

/** The blocks to write: the core, then the boot code that starts it. The partition table in the master boot record is kept. */
export function grubBlocks(boot: Uint8Array, core: Uint8Array, partition: Place): [core: GrubBlock, record: GrubBlock] {
  if (boot.length !== sector) throw new GrubCoreError(`grub/boot.img has ${boot.length} bytes, not ${sector}`)
  if (core.length <= sector) throw new GrubCoreError('grub/core.img is too short')
  const sectors = Math.ceil(core.length / sector)
  if (sectors * sector > partition.size) throw new GrubCoreError(`grub/core.img does not fit the BIOS partition of ${partition.size} bytes`)
  if (sectors - 1 > 0xffff) throw new GrubCoreError('grub/core.img is too long for one block list')
  const start = partition.offset / sector
  const record = Buffer.from(boot.subarray(0, place.bootCodeEnd))
  record.writeBigUInt64LE(BigInt(start), place.kernelSector)
  // Trust the drive number from the BIOS: replace the jump over its check by two no-ops.
  record.set([0x90, 0x90], place.driveCheck)
  const whole = Buffer.alloc(sectors * sector)
  whole.set(core)
  whole.writeBigUInt64LE(BigInt(start + 1), firstList)
  whole.writeUInt16LE(sectors - 1, firstList + 8)
  whole.writeUInt16LE(loadSegment, firstList + 10)
  return [
    { offset: partition.offset, bytes: whole },
    { offset: 0, bytes: record },
  ]
}

/** The two places for core.img: while one is in use, a new core is written to the other. */
export function coreHalves({ offset, size }: Place): [Place, Place] {
  const half = Math.floor(size / 2 / sector) * sector
  return [
    { offset, size: half },
    { offset: offset + half, size: half },
  ]
}

/** The half whose core a master boot record starts; undefined where it starts something else. */
export function halfInUse(record: Uint8Array, halves: readonly [Place, Place]): Place | undefined {
  const start = Buffer.from(record).readBigUInt64LE(place.kernelSector)
  return halves.find(({ offset }) => BigInt(offset / sector) === start)
}

/** The length in bytes of the core in a place, by its first sector; undefined for one that is not loaded by one list of the blocks behind it. */
export function coreLength(first: Uint8Array, { offset }: Place): number | undefined {
  const bytes = Buffer.from(first)
  const count = bytes.readUInt16LE(firstList + 8)
  const alone = count > 0 && bytes.readUInt16LE(secondCount) === 0
  const behind = bytes.readBigUInt64LE(firstList) === BigInt(offset / sector + 1) && bytes.readUInt16LE(firstList + 10) === loadSegment
  return alone && behind ? (count + 1) * sector : undefined
}
