/** Writes what is built. */
import { type FileHandle, open } from 'node:fs/promises'
import type { Segment } from '../../../oci/image.ts'

/** Bytes that are read at a time, and left out when they are all zero, so that they take no room on the disk. */
const unit = 1 << 20
const zeros = Buffer.alloc(unit)

/** Writes segments into a new file. Stops with the reason of the signal; throws RangeError when a file is shorter than its segment. */
export async function writeFile(path: string, segments: readonly Segment[], signal: AbortSignal): Promise<void> {
  const output = await open(path, 'w', 0o600)
  const buffer = Buffer.alloc(unit)
  try {
    let at = 0
    for (const segment of segments) {
      for await (const part of partsOf(segment, buffer)) {
        signal.throwIfAborted()
        if (!part.equals(zeros.subarray(0, part.length)))
          for (let have = 0; have < part.length; ) have += (await output.write(part, have, part.length - have, at + have)).bytesWritten
        at += part.length
      }
    }
    await output.truncate(at)
  } finally {
    await output.close()
  }
}

/** A segment in parts, each of which is valid until the next one. */
async function* partsOf(segment: Segment, buffer: Buffer): AsyncGenerator<Buffer> {
  if ('bytes' in segment) {
    const bytes = Buffer.from(segment.bytes.buffer, segment.bytes.byteOffset, segment.bytes.length)
    for (let at = 0; at < bytes.length; at += unit) yield bytes.subarray(at, at + unit)
    return
  }
  const input = await open(segment.file)
  try {
    for (let have = 0; have < segment.length; ) {
      const bytesRead = await readSome(input, buffer, segment.offset + have, Math.min(unit, segment.length - have))
      if (bytesRead === 0) throw new RangeError(`"${segment.file}" ends before byte ${segment.offset + segment.length}`)
      yield buffer.subarray(0, bytesRead)
      have += bytesRead
    }
  } finally {
    await input.close()
  }
}

const readSome = async (input: FileHandle, buffer: Buffer, offset: number, length: number) =>
  (await input.read(buffer, 0, length, offset)).bytesRead
