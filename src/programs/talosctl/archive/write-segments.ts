import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Segment } from '../../../oci/image.ts'
import { bytesOf } from '../../../oci/segments.ts'

/** Writes segments into a file. */
export async function writeSegments(path: string, segments: readonly Segment[]): Promise<void> {
  await pipeline(Readable.from(bytesOf(segments)), createWriteStream(path))
}
