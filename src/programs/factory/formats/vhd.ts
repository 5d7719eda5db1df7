/** Fixed disks of Hyper-V and Azure (Virtual Hard Disk Image Format Specification 1.0): the disk itself, then a footer of 512 bytes. */
import { constants, copyFileSync } from 'node:fs'
import { open } from 'node:fs/promises'

/** Azure takes disks of whole mebibytes. */
const granularity = 1 << 20
const footerSize = 512
const sectorSize = 512
const fixedDisk = 2
/** The program that has made it: one whose disks have the size that is stated, not that of their geometry. */
const creator = { application: 'win ', version: 0x000a0000, system: 'Wi2k' } as const

/** Writes the disk that `source` holds, filled up to whole mebibytes; the identification is hexadecimal. Equal content gives equal bytes. */
export async function writeVhd(path: string, source: string, identification: string): Promise<void> {
  copyFileSync(source, path, constants.COPYFILE_FICLONE)
  const file = await open(path, 'r+')
  try {
    const size = Math.ceil((await file.stat()).size / granularity) * granularity
    await file.truncate(size)
    await file.write(footer(size, identification), 0, footerSize, size)
  } finally {
    await file.close()
  }
}

/** The footer of a fixed disk. */
function footer(size: number, identification: string): Buffer {
  const bytes = Buffer.alloc(footerSize)
  bytes.write('conectix', 0, 'latin1')
  bytes.writeUInt32BE(2, 8) // features: reserved, always set
  bytes.writeUInt32BE(0x00010000, 12) // version of the format
  bytes.fill(0xff, 16, 24) // a fixed disk has no header elsewhere
  bytes.write(creator.application, 28, 'latin1')
  bytes.writeUInt32BE(creator.version, 32)
  bytes.write(creator.system, 36, 'latin1')
  bytes.writeBigUInt64BE(BigInt(size), 40)
  bytes.writeBigUInt64BE(BigInt(size), 48)
  const { cylinders, heads, sectors } = geometry(size / sectorSize)
  bytes.writeUInt16BE(cylinders, 56)
  bytes.writeUInt8(heads, 58)
  bytes.writeUInt8(sectors, 59)
  bytes.writeUInt32BE(fixedDisk, 60)
  bytes.write(identification.slice(0, 32), 68, 'hex')
  bytes.writeUInt32BE(~bytes.reduce((sum, byte) => sum + byte, 0) >>> 0, 64)
  return bytes
}

/** Cylinders, heads and sectors of a disk of so many sectors, as the appendix of the specification computes them. */
export function geometry(total: number): { cylinders: number; heads: number; sectors: number } {
  const counted = Math.min(total, 65_535 * 16 * 255)
  const of = (sectors: number, heads: number) => ({ cylinders: Math.floor(counted / sectors / heads), heads, sectors })
  if (counted >= 65_535 * 16 * 63) return of(255, 16)
  const heads = Math.max(4, Math.floor((Math.floor(counted / 17) + 1023) / 1024))
  if (heads <= 16 && Math.floor(counted / 17) < heads * 1024) return of(17, heads)
  return Math.floor(counted / 31) < 16 * 1024 ? of(31, 16) : of(63, 16)
}
