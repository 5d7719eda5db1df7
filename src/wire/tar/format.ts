/**
 * The tar format: ustar (POSIX.1-1988) with the extended headers of pax (POSIX.1-2001, pax(1)), and what GNU tar writes in their
 * place (tar(5)): long names in entries of their own, and numbers in base 256.
 */

/** The block size of tar in bytes. */
export const tarBlock = 512

/** A damaged archive, or an entry that the format cannot represent or this code does not support. */
export class TarError extends Error {
  override name = 'TarError'
}

/** The type of an entry by its letter in the header. */
export const tarTypes = {
  '0': 'file',
  '1': 'hardlink',
  '2': 'symlink',
  '3': 'character',
  '4': 'block',
  '5': 'directory',
  '6': 'fifo',
} as const

export type TarType = (typeof tarTypes)[keyof typeof tarTypes]

/** Where the fields of a header begin, and their sizes. */
export const tarFields = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  modified: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  target: [157, 100],
  magic: [257, 8],
  major: [329, 8],
  minor: [337, 8],
  prefix: [345, 155],
} as const

export type TarField = keyof typeof tarFields

/** Zero bytes after content of `size` bytes, up to the next block. */
export const tarPadding = (size: number): Uint8Array => new Uint8Array((tarBlock - (size % tarBlock)) % tarBlock)

/** The sum of the bytes of a header, in which the checksum itself counts as blanks. */
export function tarChecksum(header: Uint8Array): number {
  const [start, length] = tarFields.checksum
  return header.reduce((sum, byte, at) => sum + (at >= start && at < start + length ? 0x20 : byte), 0)
}
