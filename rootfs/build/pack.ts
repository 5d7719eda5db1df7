/** Packs a tree into an image in dist/. */
import { existsSync, renameSync, rmSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import type { TreeEntry } from '../../src/programs/factory/root/tree.ts'
import { writeSquashfs } from '../../src/programs/factory/root/writer.ts'
import { BlockPress } from '../squashfs/blocks.ts'
import type { Compressor } from '../squashfs/compressor.ts'
import { dist } from './binary.ts'
import { cacheFolder, hashFile } from './cache.ts'
import { exclusive } from './exclusive.ts'
import { formatSize, task } from './progress.ts'

/** XZ with the largest blocks that SquashFS has. */
export const smallest = { blockSize: 1024 * 1024 }

/** Zstandard at this level: a fifth larger, and read about ten times faster. */
export const fastest = { blockSize: 128 * 1024, level: 6 }

/** Packs the entries into `dist/<name>`, or a file elsewhere, which changes only when its bytes do; returns the stored size of each file. */
export async function pack(
  name: string,
  entries: readonly TreeEntry[],
  compressor: Compressor,
  blockSize: number,
): Promise<Map<string, number>> {
  return exclusive(basename(name), async () => {
    const shown = task(`packing ${basename(name)}`)
    const output = resolve(dist, name)
    const unfinished = `${output}.${process.pid}`
    const press = new BlockPress(join(cacheFolder, 'blocks'), compressor)
    try {
      const progress = (done: number, total: number) => shown.at(`${formatSize(done)} of ${formatSize(total)}`)
      const { size, stored } = await writeSquashfs(unfinished, entries, { blockSize, press, progress })
      const { sha256 } = await hashFile(unfinished)
      const same = existsSync(output) && (await hashFile(output)).sha256 === sha256
      if (!same) renameSync(unfinished, output)
      shown.done(`${formatSize(size)}, ${same ? 'as it was' : `${press.fresh} blocks were new`}, sha256 ${sha256}`)
      return stored
    } catch (error) {
      shown.failed()
      throw error
    } finally {
      rmSync(unfinished, { force: true })
    }
  })
}
