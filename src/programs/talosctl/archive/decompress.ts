import { Readable, type Transform } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'

type Chunks = AsyncIterable<Uint8Array>

/** The bytes inside gzip, unpacked no faster than they are taken. Throws when they are damaged. */
export const gunzip = (chunks: Chunks): AsyncGenerator<Uint8Array, void> => through(chunks, createGunzip())

/** The bytes inside Zstandard, in the same way. */
const unzstd = (chunks: Chunks): AsyncGenerator<Uint8Array, void> => through(chunks, createZstdDecompress())

/** The tar of a layer, as its media type specifies its compression. */
export function layerTar(chunks: Chunks, mediaType: string): Chunks {
  if (mediaType.endsWith('gzip')) return gunzip(chunks)
  return mediaType.endsWith('zstd') ? unzstd(chunks) : chunks
}

async function* through(chunks: Chunks, unpacked: Transform): AsyncGenerator<Uint8Array, void> {
  const source = Readable.from(chunks, { objectMode: false })
  source.on('error', (error) => unpacked.destroy(error))
  source.pipe(unpacked)
  try {
    for await (const chunk of unpacked) yield chunk as Uint8Array
  } finally {
    source.destroy()
  }
}
