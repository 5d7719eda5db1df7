/** What a signature on a device describes. */
export interface Signature {
  /** The type: `xfs`, `extfs`, `vfat`, `gpt`, `luks` … */
  name: string
  uuid?: string
  label?: string
  /** Size of its smallest unit, and of its blocks, in bytes. */
  blockSize?: number
  filesystemBlockSize?: number
  /** Size in bytes according to its superblock. */
  size?: number
}

/** A UUID of 32 hexadecimal digits (RFC 9562, 4). */
export const uuidOfHex = (hex: string): string =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`

/** A big-endian UUID. */
export function uuidText(bytes: Uint8Array): string | undefined {
  const hex = Buffer.from(bytes).toString('hex')
  return /^0*$/.test(hex) ? undefined : uuidOfHex(hex)
}

/** The string up to the first NUL, without trailing blanks; undefined when it is empty. */
export function labelText(bytes: Uint8Array, encoding: 'utf8' | 'latin1' = 'utf8'): string | undefined {
  const end = bytes.indexOf(0)
  const text = Buffer.from(end < 0 ? bytes : bytes.subarray(0, end))
    .toString(encoding)
    .trimEnd()
  return text || undefined
}

/** A signature without its undefined keys. */
export function signature(fields: { [K in keyof Signature]: Signature[K] | undefined } & { name: string }): Signature {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as unknown as Signature
}

/** Whether a number is a power of two within bounds. */
export const isPower = (value: number, least: number, most: number): boolean =>
  value >= least && value <= most && (value & (value - 1)) === 0
