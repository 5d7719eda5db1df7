/** One installer image for machines of every architecture: an index over the images of the archives that lie side by side. */
import { existsSync } from 'node:fs'
import { installerFile, openInstaller } from '../../../src/programs/factory/build/installer.ts'
import { withFile } from '../../../src/programs/factory/build/read-file.ts'
import { findReleases, pathOf, type Release } from '../../../src/programs/factory/releases.ts'
import { writeLayout } from '../../../src/programs/talosctl/archive/image-archive.ts'

/** The archive with the images of all architectures. */
export const installerIndex = 'ichor-installer.tar'

/** The releases of a version in a folder that have an installer, one for each architecture. */
export const installersOf = (folder: string, version: string): Release[] =>
  findReleases(folder).filter((each) => each.folder === folder && each.version === version && existsSync(pathOf(each, installerFile)))

/** Writes the archive. Every blob is the same as in the archive of its architecture. */
export async function writeInstallerIndex(path: string, releases: readonly Release[]): Promise<void> {
  const images = await Promise.all(
    releases.map((release) =>
      withFile(release, installerFile, async ({ path: file, size, read }) => {
        const { index, blobs } = await openInstaller(read, size)
        const content = [...blobs].map(([digest, place]) => ({
          digest,
          size: place.size,
          content: [{ file, offset: place.offset, length: place.size }],
        }))
        return { index, content }
      }),
    ),
  )
  const manifests = images.flatMap(({ index }) => index.manifests)
  const blobs = new Map(images.flatMap(({ content }) => content.map((blob) => [blob.digest, blob] as const)))
  await writeLayout(path, { ...images[0]?.index, manifests }, [...blobs.values()])
}
