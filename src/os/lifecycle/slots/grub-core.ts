/**
 * GRUB on a BIOS machine: its first sector (boot.img) in the master boot record, its core (core.img) at the beginning of
 * the BIOS partition. Both carry the places of what they load next, which are filled in here; offsets are those of
 * grub-core/boot/i386/pc/{boot,diskboot}.S.
 */

/** Places in boot.img. */
const place = { kernelSector: 0x5c, driveCheck: 0x66, bootCodeEnd: 440 } as const
/** The last list of blocks in the core's first sector: start, count, segment. */
const firstList = 512 - 12
/** Where the rest of the core is loaded: its first sector runs at 0x8000. */
const loadSegment = 0x820

const sector = 512

/** GRUB's parts are not what they should be, or do not fit. */
export class GrubCoreError extends Error {
  override name = 'GrubCoreError'
}

/** What is to be written where, in bytes from the beginning of the disk. The master boot record keeps its table. */
export function grubBlocks(
  boot: Uint8Array,
  core: Uint8Array,
  partition: { offset: number; size: number },
): { offset: number; bytes: Uint8Array }[] {
  if (boot.length !== sector) throw new GrubCoreError(`grub/boot.img has ${boot.length} bytes, not ${sector}`)
  if (core.length <= sector) throw new GrubCoreError('grub/core.img is too short')
  const sectors = Math.ceil(core.length / sector)
  if (sectors * sector > partition.size) throw new GrubCoreError(`grub/core.img does not fit the BIOS partition of ${partition.size} bytes`)
  if (sectors - 1 > 0xffff) throw new GrubCoreError('grub/core.img is too long for one list of blocks')
  const start = partition.offset / sector
  const record = Buffer.from(boot.subarray(0, place.bootCodeEnd))
  record.writeBigUInt64LE(BigInt(start), place.kernelSector)
  // The drive number the BIOS gives is taken as it is: the jump over its check becomes two no-ops.
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
