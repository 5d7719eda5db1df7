/** Requests and answers of the kernel's device mapper (linux/dm-ioctl.h), interface version 4, little endian. */
import { DecodeError } from '../decode-error.ts'

const headerSize = 312
const version = [4, 0, 0] as const
const targetSize = 40
const nameSize = 128
const uuidSize = 129

/** Bits of `flags`. */
export const mapperFlags = { readOnly: 1 << 0, suspend: 1 << 1, activePresent: 1 << 5, secureData: 1 << 15 } as const

/** One part of a mapping. Lengths in sectors of 512 bytes. */
export interface MapperTarget {
  readonly type: string
  readonly start: number
  readonly sectors: number
  readonly parameters: string
}

/** A request about the mapping with this name. */
export interface MapperRequest {
  readonly name: string
  readonly uuid?: string
  readonly flags?: number
  readonly targets?: readonly MapperTarget[]
}

/** What the kernel answers about a mapping. */
export interface MapperAnswer {
  readonly major: number
  readonly minor: number
  readonly uuid: string
  readonly flags: number
  /** Number of processes and mounts that use it. */
  readonly openCount: number
}

/** Encodes a request; the kernel answers in the same memory. Throws RangeError for a name or UUID that is too long. */
export function writeMapperRequest({ name, uuid = '', flags = 0, targets = [] }: MapperRequest): Uint8Array {
  if (Buffer.byteLength(name) >= nameSize || Buffer.byteLength(uuid) >= uuidSize)
    throw new RangeError(`the name "${name}" or its UUID is too long for the device mapper`)
  const encoded = targets.map(writeTarget)
  const request = Buffer.alloc(headerSize + encoded.reduce((sum, { length }) => sum + length, 0))
  for (const [index, number] of version.entries()) request.writeUInt32LE(number, 4 * index)
  request.writeUInt32LE(request.length, 12)
  request.writeUInt32LE(headerSize, 16)
  request.writeUInt32LE(targets.length, 20)
  request.writeUInt32LE(flags >>> 0, 28)
  request.write(name, 48)
  request.write(uuid, 48 + nameSize)
  let at = headerSize
  for (const target of encoded) {
    request.set(target, at)
    at += target.length
  }
  return new Uint8Array(request.buffer, request.byteOffset, request.length)
}

/** struct dm_target_spec, its parameters with a final NUL, and padding to 8 bytes. */
function writeTarget({ type, start, sectors, parameters }: MapperTarget): Buffer {
  const text = Buffer.from(`${parameters}\0`)
  const target = Buffer.alloc(Math.ceil((targetSize + text.length) / 8) * 8)
  target.writeBigUInt64LE(BigInt(start), 0)
  target.writeBigUInt64LE(BigInt(sectors), 8)
  target.writeUInt32LE(target.length, 20)
  target.write(type.slice(0, 15), 24)
  target.set(text, targetSize)
  return target
}

/** Decodes an answer. Throws DecodeError for one that is too short. */
export function readMapperAnswer(bytes: Uint8Array): MapperAnswer {
  if (bytes.length < headerSize) throw new DecodeError('device mapper answer', bytes.length, 'it is too short')
  const answer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const device = answer.readUInt32LE(40) // huge_encode_dev(): a minor number of 20 bits around a major number of 12
  const uuid = answer.subarray(48 + nameSize, 48 + nameSize + uuidSize)
  const end = uuid.indexOf(0)
  return {
    major: (device >>> 8) & 0xfff,
    minor: (device & 0xff) | ((device >>> 12) & 0xfff00),
    uuid: uuid.toString('latin1', 0, end < 0 ? uuidSize : end),
    flags: answer.readUInt32LE(28),
    openCount: answer.readInt32LE(24),
  }
}
