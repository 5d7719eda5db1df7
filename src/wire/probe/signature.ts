/** What a signature on a device tells. */
export interface Signature {
  /** What it is: `xfs`, `extfs`, `vfat`, `gpt`, `luks` … */
  name: string
  uuid?: string
  label?: string
  /** Bytes of its smallest unit, and of its blocks. */
  blockSize?: number
  filesystemBlockSize?: number
  /** Bytes it says it takes. */
  size?: number
}

/** A UUID in the order it is read. */
export function uuidText(bytes: Uint8Array): string | undefined {
  const hex = Buffer.from(bytes).toString('hex')
  if (/^0*$/.test(hex)) return undefined
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`
}

/** Text up to the first NUL, without blanks at its end; undefined when nothing is left. */
export function labelText(bytes: Uint8Array, encoding: 'utf8' | 'latin1' = 'utf8'): string | undefined {
  const end = bytes.indexOf(0)
  const text = Buffer.from(end < 0 ? bytes : bytes.subarray(0, end))
    .toString(encoding)
    .trimEnd()
  return text || undefined
}

/** A signature without the keys nothing is known for. */
export function signature(told: { [K in keyof Signature]: Signature[K] | undefined } & { name: string }): Signature {
  return Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined)) as unknown as Signature
}

/** Whether a number is a power of two within bounds. */
export const isPower = (value: number, least: number, most: number): boolean =>
  value >= least && value <= most && (value & (value - 1)) === 0
