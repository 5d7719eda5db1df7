/** Disks as Google Cloud imports them: `disk.raw`, of whole gibibytes, in a compressed tar archive. */
import { createReadStream, createWriteStream, statSync } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { writeTar } from '../../../wire/tar/write.ts'

/** Bytes of which the disk has a whole number. */
const gibibyte = 1 << 30
const piece = Buffer.alloc(1 << 20)

async function* filledUp(source: string, held: number, size: number): AsyncGenerator<Uint8Array> {
  yield* createReadStream(source, { highWaterMark: piece.length })
  for (let left = size - held; left > 0; left -= piece.length) yield piece.subarray(0, Math.min(left, piece.length))
}

/** Writes the archive of the disk that `source` holds. Equal content gives equal bytes. */
export async function writeGcp(path: string, source: string, granularity = gibibyte): Promise<void> {
  const held = statSync(source).size
  const size = Math.ceil(held / granularity) * granularity
  const disk = { path: 'disk.raw', type: 'file', mode: 0o644, size, content: filledUp(source, held, size) } as const
  await pipeline(Readable.from(writeTar([disk])), createGzip({ level: 6 }), createWriteStream(path))
}
