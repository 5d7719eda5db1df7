/** Superblocks of Linux software RAID, as the kernel writes them (md_p.h): a mirror of two, of which this is the first disk. */

export type RaidVersion = '0.90' | '1.0' | '1.1' | '1.2'

const uuid = Buffer.from('00112233445566778899aabbccddeeff', 'hex')

/** The superblock of a member of this size in bytes, and its offset. */
export function raidSuperblock(version: RaidVersion, size: number): { offset: number; bytes: Buffer } {
  if (version === '0.90') return { offset: Math.floor(size / 65536) * 65536 - 65536, bytes: oldSuperblock(size) }
  const offset = { '1.0': Math.floor((size - 8192) / 4096) * 4096, '1.1': 0, '1.2': 4096 }[version]
  const bytes = Buffer.alloc(260)
  bytes.writeUInt32LE(0xa92b4efc, 0)
  bytes.writeUInt32LE(1, 4)
  bytes.set(uuid, 16)
  bytes.write('node:0', 32, 'latin1')
  bytes.writeUInt32LE(1, 72)
  bytes.writeBigUInt64LE(65536n, 80)
  bytes.writeUInt32LE(2, 92)
  bytes.writeBigUInt64LE(version === '1.0' ? 0n : 2048n, 128)
  bytes.writeBigUInt64LE(65536n, 136)
  bytes.writeBigUInt64LE(BigInt(offset / 512), 144)
  bytes.writeUInt32LE(2, 220)
  bytes.writeUInt16LE(1, 258)
  bytes.writeUInt32LE(sum(bytes), 216)
  return { offset, bytes }
}

function oldSuperblock(size: number): Buffer {
  const bytes = Buffer.alloc(4096)
  const words: Record<number, number> = { 0: 0xa92b4efc, 2: 90, 7: 1, 8: size / 1024 - 64, 9: 2, 10: 2, 34: 2, 35: 2 }
  for (const [index, word] of Object.entries(words)) bytes.writeUInt32LE(word, Number(index) * 4)
  for (const [place, index] of [5, 13, 14, 15].entries()) bytes.writeUInt32LE(uuid.readUInt32BE(place * 4), index * 4)
  bytes.writeUInt32LE(sum(bytes), 38 * 4)
  return bytes
}

/** The sum of all words while the field of the sum is zero, its carry added once. */
function sum(bytes: Buffer): number {
  let total = 0n
  for (let at = 0; at < bytes.length; at += 4) total += BigInt(bytes.readUInt32LE(at))
  return Number(((total & 0xffffffffn) + (total >> 32n)) & 0xffffffffn)
}
