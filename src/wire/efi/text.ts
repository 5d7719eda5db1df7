/** Texts of the firmware: UTF-16 in little endian, with or without a zero at the end. */

/** A text up to its first zero. */
export function utf16Text(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength & ~1).toString('utf16le')
  const end = text.indexOf('\0')
  return end < 0 ? text : text.slice(0, end)
}
