/** The root file system of container nodes with system extensions in it, as an image for machines has them. */
import { rmSync } from 'node:fs'
import { assemble } from '../../../rootfs/build/assemble.ts'
import { kubernetesReleases } from '../../../rootfs/build/kubernetes.ts'
import { fastest, pack } from '../../../rootfs/build/pack.ts'
import { withParts } from '../../../rootfs/build/rootfs.ts'
import { addExtensions, unpackExtensions } from '../../../rootfs/image/extensions/extensions.ts'
import { zstd } from '../../../rootfs/squashfs/compressor.ts'
import { verifyTree } from '../../../src/programs/factory/root/verify.ts'

/** Packs the image. Throws for extensions that are refused. */
export async function packExtendedRoot(path: string, images: readonly string[]): Promise<void> {
  const kubernetes = kubernetesReleases[0]
  const { extensions, remove } = await unpackExtensions(images, 'amd64')
  try {
    await withParts({ kubernetes }, async ({ program, programs }) => {
      const { tree } = await assemble(program, programs, { kubernetes })
      await addExtensions(tree, extensions)
      verifyTree(tree)
      await pack(path, tree.entries(), zstd(fastest.level), fastest.blockSize)
    })
  } catch (error) {
    rmSync(path, { force: true })
    throw error
  } finally {
    remove()
  }
}

if (import.meta.main) {
  const [path = '', ...images] = process.argv.slice(2)
  await packExtendedRoot(path, images)
}
