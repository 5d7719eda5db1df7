/** All modules of the kernel as one SquashFS image, mounted over /usr/lib/modules. */
import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { pack } from '../build/pack.ts'
import { Tree } from '../build/tree.ts'
import { zstd } from '../squashfs/compressor.ts'
import type { Kernel } from './kernel.ts'

/** Name of the image in dist/. */
export const modulesImage = 'modules.sqsh'

/** Packs the pruned modules with depmod's tables. */
export async function packModules({ modules, release }: Kernel): Promise<void> {
  const tree = new Tree()
  for (const entry of readdirSync(join(modules, release), { recursive: true, withFileTypes: true })) {
    const source = join(entry.parentPath, entry.name)
    const path = source.slice(modules.length)
    if (entry.isSymbolicLink()) tree.link('modules', path, readlinkSync(source))
    else if (entry.isFile()) tree.file('modules', path, source, 0o644)
    else tree.dir('modules', path)
  }
  await pack(modulesImage, tree.entries(), zstd(15), 256 * 1024)
}
