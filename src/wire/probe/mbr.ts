/** MBR partition tables, in the first sector of a disk. */
import type { DeviceView } from './view.ts'

/** The type of the entry that protects a GPT. */
const protective = 0xee

/** The contents of the first sector: an MBR partition table, a protective one for a GPT, or none. */
export function mbrKind(view: DeviceView): 'mbr' | 'protective' | undefined {
  const bytes = view.bytes(0, 512)
  if (bytes?.[510] !== 0x55 || bytes[511] !== 0xaa) return undefined
  const entries = [0, 1, 2, 3].map((index) => bytes.subarray(446 + index * 16, 462 + index * 16))
  // Other boot sectors have code where the entries would be.
  if (entries.some((entry) => entry[0] !== 0 && entry[0] !== 0x80)) return undefined
  const types = entries.map((entry) => entry[4]).filter((type) => type !== 0)
  if (types.length === 0) return undefined
  return types.includes(protective) ? 'protective' : 'mbr'
}
