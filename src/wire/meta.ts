/**
 * The META partition: small values under numeric tags. It starts with two copies of 256 KiB each; a reader takes the first
 * valid one. Its last 1024 bytes hold the legacy area (the ADV of syslinux), also twice; it is searched for values that the
 * new area does not contain.
 */
import { createHash } from 'node:crypto'
import { DecodeError } from './decode-error.ts'

/** Size of one copy in bytes. */
export const metaCopySize = 256 << 10
/** Maximum total size of the values of a copy, each with 8 bytes for its tag and length. */
export const metaCapacity = metaCopySize - 40

const firstMagic = 0x5a4b3c2d
const lastMagic = 0xa5b4c3d2
const hashSize = 32
const hashAt = metaCopySize - 4 - hashSize

/** Values by tag, 1 to 255. */
export type MetaValues = ReadonlyMap<number, Uint8Array>

/** Total size of values in bytes. */
export const metaSize = (values: MetaValues): number => [...values.values()].reduce((sum, value) => sum + 8 + value.length, 0)

/** Encodes one copy. Throws DecodeError when the values do not fit. */
export function writeMeta(values: MetaValues): Uint8Array {
  if (metaSize(values) > metaCapacity) throw new DecodeError('META', 0, `its values take more than ${metaCapacity} bytes`)
  const copy = Buffer.alloc(metaCopySize)
  copy.writeUInt32BE(firstMagic, 0)
  let at = 4
  for (const [tag, value] of [...values].sort(([a], [b]) => a - b)) {
    copy.writeUInt32BE(tag, at)
    copy.writeUInt32BE(value.length, at + 4)
    copy.set(value, at + 8)
    at += 8 + value.length
  }
  copy.writeUInt32BE(lastMagic, metaCopySize - 4)
  copy.set(createHash('sha256').update(copy).digest(), hashAt)
  return new Uint8Array(copy)
}

/** Decodes one copy. Throws DecodeError when it is damaged. */
export function readMeta(bytes: Uint8Array): Map<number, Uint8Array> {
  if (bytes.length < metaCopySize) throw new DecodeError('META', bytes.length, 'it ends too soon')
  const copy = Buffer.from(bytes.buffer, bytes.byteOffset, metaCopySize)
  if (copy.readUInt32BE(0) !== firstMagic) throw new DecodeError('META', 0, 'no magic in front')
  if (copy.readUInt32BE(metaCopySize - 4) !== lastMagic) throw new DecodeError('META', metaCopySize - 4, 'no magic at the end')
  // The sum counts as zeros in itself.
  const sum = createHash('sha256').update(copy.subarray(0, hashAt)).update(Buffer.alloc(hashSize))
  const hash = sum.update(copy.subarray(hashAt + hashSize)).digest()
  if (!hash.equals(copy.subarray(hashAt, hashAt + hashSize))) throw new DecodeError('META', hashAt, 'its sum is wrong')
  const values = new Map<number, Uint8Array>()
  for (let at = 4; at + 4 <= hashAt; ) {
    const tag = copy.readUInt32BE(at)
    if (tag === 0) break
    if (at + 8 > hashAt) throw new DecodeError('META', at, 'a value without a length')
    const length = copy.readUInt32BE(at + 4)
    if (at + 8 + length > hashAt) throw new DecodeError('META', at, 'a value that goes beyond the end')
    values.set(tag, new Uint8Array(copy.subarray(at + 8, at + 8 + length)))
    at += 8 + length
  }
  return values
}

/** Size of one copy of the legacy area, of which there are two. */
export const advSize = 512

const adv = { head: 0x5a2d2fa5, sum: 0xa3041767, tail: 0xdd28bf64, data: 8, end: advSize - 4 }

/** Encodes one copy of the legacy area. Throws DecodeError when the values do not fit: each takes 2 bytes besides its own. */
export function writeAdv(values: MetaValues): Uint8Array {
  const copy = Buffer.alloc(advSize)
  let at = adv.data
  for (const [tag, value] of [...values].sort(([a], [b]) => a - b)) {
    if (value.length > 255 || at + 2 + value.length > adv.end) throw new DecodeError('ADV', at, 'its values do not fit')
    copy.set([tag, value.length, ...value], at)
    at += 2 + value.length
  }
  copy.writeUInt32LE(adv.head, 0)
  copy.writeUInt32LE(advSum(copy), 4)
  copy.writeUInt32LE(adv.tail, adv.end)
  return new Uint8Array(copy)
}

/** The value that completes the checksum over the words of the data. */
function advSum(copy: Buffer): number {
  let sum = adv.sum
  for (let at = adv.data; at < adv.end; at += 4) sum = (sum - copy.readUInt32LE(at)) >>> 0
  return sum
}

/** Decodes one copy of the legacy area. Throws DecodeError when it is damaged. */
export function readAdv(bytes: Uint8Array): Map<number, Uint8Array> {
  if (bytes.length < advSize) throw new DecodeError('ADV', bytes.length, 'it ends too soon')
  const copy = Buffer.from(bytes.buffer, bytes.byteOffset, advSize)
  if (copy.readUInt32LE(0) !== adv.head || copy.readUInt32LE(adv.end) !== adv.tail) throw new DecodeError('ADV', 0, 'no magic')
  if (copy.readUInt32LE(4) !== advSum(copy)) throw new DecodeError('ADV', 4, 'its sum is wrong')
  const values = new Map<number, Uint8Array>()
  for (let at = adv.data; at + 1 < adv.end; ) {
    const tag = copy.readUInt8(at)
    if (tag === 0) break
    const length = copy.readUInt8(at + 1)
    if (at + 2 + length > adv.end) throw new DecodeError('ADV', at, 'a value that goes beyond the end')
    values.set(tag, new Uint8Array(copy.subarray(at + 2, at + 2 + length)))
    at += 2 + length
  }
  return values
}
