import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Segment } from '../../../oci/image.ts'

/** Bytes of segments, in turn. */
export async function* bytesOf(segments: readonly Segment[]): AsyncGenerator<Uint8Array> {
  for (const segment of segments) {
    if ('bytes' in segment) yield segment.bytes
    else
      for await (const chunk of Bun.file(segment.file)
        .slice(segment.offset, segment.offset + segment.length)
        .stream())
        yield chunk
  }
}

/** Writes segments into a file. */
export async function writeSegments(path: string, segments: readonly Segment[]): Promise<void> {
  await pipeline(Readable.from(bytesOf(segments)), createWriteStream(path))
}
