/** The files of a release, which its installer holds, and its ISO as well. */
import { existsSync } from 'node:fs'
import { DecodeError } from '../../../wire/decode-error.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { readIsoFiles } from '../../../wire/iso9660/files.ts'
import { findTarPlaces, type ReadAt } from '../../../wire/tar/read.ts'
import { installerFile, openInstaller } from '../build/installer.ts'
import { isoFile } from '../build/iso.ts'
import { readDocument, type Stretch, withFile, withStretch } from '../build/read-file.ts'
import { FactoryError } from '../factory-error.ts'
import { installFolderOf, pathOf, type Release } from '../releases.ts'

/** Most bytes of a file that is read into memory: a kernel image. */
const partLimit = 256 << 20

/** Files of a release by their names in its manifest. */
export interface ReleaseFiles {
  stretch(name: string): Stretch
  read(name: string): Promise<Buffer>
}

/** Finds the files of a release. Throws FactoryError. */
export async function releaseFilesOf(release: Release): Promise<ReleaseFiles> {
  const within = existsSync(pathOf(release, installerFile)) ? await inInstaller(release) : await inIso(release)
  const stretch = (name: string): Stretch => {
    const found = within.get(`${installFolderOf(release)}/${name}`)
    if (!found) throw new FactoryError(500, `the release has no "${name}": make it again with mkimage.sh`)
    return found
  }
  const read = (name: string): Promise<Buffer> => {
    const place = stretch(name)
    if (place.length > partLimit) throw new FactoryError(500, `"${name}" of the release has ${place.length} bytes`)
    return withStretch(place, async (bytes) => Buffer.from(await bytes(0, place.length)))
  }
  if ((await read('manifest')).toString() !== (await readDocument(release, 'ichor-amd64.manifest')))
    throw new FactoryError(500, 'the files of the release are of different builds: make it again with mkimage.sh')
  return { stretch, read }
}

function inInstaller(release: Release): Promise<Map<string, Stretch>> {
  return withFile(release, installerFile, async ({ path, size, read }) => {
    const { manifest, blobs } = await openInstaller(read, size)
    const layer = blobs.get(manifest.layers[0]?.digest ?? '')
    if (!layer) throw new FactoryError(500, `"${installerFile}" of the release has no layer: make it again with mkimage.sh`)
    const inLayer: ReadAt = (offset, length) => read(layer.offset + offset, length)
    const places = await findTarPlaces(inLayer, layer.size)
    return new Map(places.map(({ name, offset, size: length }) => [name, { file: path, offset: layer.offset + offset, length }]))
  })
}

function inIso(release: Release): Promise<Map<string, Stretch>> {
  return withFile(release, isoFile, async ({ path, size, read }) => {
    try {
      const files = await readIsoFiles(read, size)
      return new Map([...files].map(([name, { offset, size: length }]) => [name, { file: path, offset, length }]))
    } catch (error) {
      throw error instanceof DecodeError ? new FactoryError(500, `"${isoFile}" of the release: ${messageOf(error)}`) : error
    }
  })
}
