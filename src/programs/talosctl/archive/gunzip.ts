import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'

/** The bytes inside gzip, unpacked no faster than they are taken. Throws when they are damaged. */
export async function* gunzip(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const source = Readable.from(chunks, { objectMode: false })
  const unpacked = source.pipe(createGunzip())
  source.on('error', (error) => unpacked.destroy(error))
  try {
    for await (const chunk of unpacked) yield chunk as Uint8Array
  } finally {
    source.destroy()
  }
}
