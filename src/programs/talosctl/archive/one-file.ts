import { TarError } from '../../../wire/tar/format.ts'
import { tarEntries } from '../../../wire/tar/read.ts'
import { gunzip } from './decompress.ts'

const largest = 16 * 1024 * 1024

/** The content of the file with this name in a .tar.gz held in memory. */
export async function fileFromTarGz(archive: Uint8Array, name: string): Promise<Uint8Array> {
  for await (const entry of tarEntries(gunzip(once(archive)))) {
    if (entry.type !== 'file' || entry.name.replace(/^\.?\//, '') !== name) continue
    if (entry.size > largest) throw new TarError(`"${name}" in the archive has ${entry.size} bytes, more than ${largest}`)
    const chunks: Uint8Array[] = []
    for await (const chunk of entry.content) chunks.push(chunk)
    return Buffer.concat(chunks)
  }
  throw new TarError(`"${name}" is not in the archive`)
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes
}
