/**
 * Installs GRUB for BIOS: boot.img in the master boot record, core.img at the start of the BIOS partition. Both contain the
 * locations of the next stage, which are filled in here at the offsets of grub-core/boot/i386/pc/{boot,diskboot}.S.
 */

/** Offsets in boot.img. */
const place = { kernelSector: 0x5c, driveCheck: 0x66, bootCodeEnd: 440 } as const
/** The last block list in the first sector of core.img: start, count, segment. */
const firstList = 512 - 12
/** Load segment of the remaining core: its first sector runs at 0x8000. */
const loadSegment = 0x820

const sector = 512

/** GRUB's files are invalid or do not fit. */
export class GrubCoreError extends Error {
  override name = 'GrubCoreError'
}

/** The blocks to write, with byte offsets on the disk. The partition table in the master boot record is kept. */
export function grubBlocks(
  boot: Uint8Array,
  core: Uint8Array,
  partition: { offset: number; size: number },
): { offset: number; bytes: Uint8Array }[] {
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
