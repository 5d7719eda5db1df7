/**
 * Compresses a stream into gzip members (RFC 1952) of some hundred kilobytes: one is compressed on another thread while the
 * previous one is sent. Incompressible chunks are stored (RFC 1951, section 3.2.4); a sample of each chunk decides, since
 * compressing all of it would cost more than sending it.
 */

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { gathered } from '../gathered.ts'

const blockSize = 256 * 1024
const sampleSize = 16 * 1024
/** Compression ratio of the sample above which a chunk is stored. */
const worthwhile = 0.97
/** Maximum size of a stored block. */
const storedSize = 0xffff

const compressed = promisify(gzip) as (
  bytes: Uint8Array,
  options: { level: number; memLevel: number; chunkSize: number },
) => Promise<Buffer>

/** Compresses chunks. A chunk must not be changed after it was passed in. */
export async function* gzipped(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void> {
  let last: Promise<Buffer> | undefined
  for await (const block of gathered(chunks, blockSize)) {
    const next = member(block)
    next.catch(() => {})
    if (last) yield await last
    last = next
  }
  yield await (last ?? member(Buffer.alloc(0)))
}

async function member(bytes: Buffer): Promise<Buffer> {
  const options = { level: 1, memLevel: 9, chunkSize: blockSize }
  if (bytes.length > 2 * sampleSize) {
    const middle = (bytes.length - sampleSize) >> 1
    const sample = await compressed(bytes.subarray(middle, middle + sampleSize), options)
    if (sample.length > sampleSize * worthwhile) return stored(bytes)
  }
  return compressed(bytes, options)
}

/** A member with uncompressed content. */
function stored(bytes: Buffer): Buffer {
  const pieces = Math.ceil(bytes.length / storedSize)
  const out = Buffer.allocUnsafe(10 + pieces * 5 + bytes.length + 8)
  // Magic, deflate, no flags, no time, no extra flags, Unix.
  let at = out.write('1f8b0800000000000003', 0, 'hex')
  for (let from = 0; from < bytes.length; from += storedSize) {
    const to = Math.min(from + storedSize, bytes.length)
    at = out.writeUInt8(to === bytes.length ? 1 : 0, at)
    at = out.writeUInt16LE(to - from, at)
    at = out.writeUInt16LE(~(to - from) & 0xffff, at)
    at += bytes.copy(out, at, from, to)
  }
  at = out.writeUInt32LE(Bun.hash.crc32(bytes), at)
  out.writeUInt32LE(bytes.length, at)
  return out
}
