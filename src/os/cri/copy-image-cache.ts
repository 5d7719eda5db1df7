/** Copies the images of a medium to the disk. */
import { pipeline } from 'node:stream/promises'
import { prettyBinarySize } from '../block/public.ts'
import type { Kernel } from '../kernel.ts'

/** What copying needs of the files of the machine. */
export type CopyFiles = Pick<
  Kernel['files'],
  'exists' | 'walk' | 'lstatIfThere' | 'mkdirAll' | 'openRead' | 'openWrite' | 'syncFile' | 'move' | 'statfs'
>

/** Blobs first, so that a manifest is not there before what it names. */
const parts = ['blob', 'manifests']

/** The images do not fit on the volume. */
export class NoSpace extends Error {
  override name = 'NoSpace'
}

/**
 * Copies files that are missing or of another size; each appears under its name only once it is whole. Nothing is written when
 * they do not fit. Throws NoSpace.
 */
export async function copyImageCache(
  files: CopyFiles,
  { from, to, signal }: { from: string; to: string; signal: AbortSignal },
): Promise<{ files: number; bytes: number }> {
  const folders: string[] = []
  const wanted: { path: string; target: string; size: number }[] = []
  for (const part of parts.filter((each) => files.exists(`${from}/${each}`)))
    for await (const { path, relative, stats, error } of files.walk(`${from}/${part}`)) {
      signal.throwIfAborted()
      if (!stats) throw error ?? new Error(`copy image cache: "${path}" cannot be read`)
      const target = `${to}/${part}${relative && `/${relative}`}`
      if (stats.isDirectory()) folders.push(target)
      else if (!stats.isFile()) throw new Error(`copy image cache: "${path}" is neither a folder nor a file`)
      else if (files.lstatIfThere(target)?.size !== stats.size) wanted.push({ path, target, size: stats.size })
    }
  const { available, blockSize } = files.statfs(to)
  const needed = [...folders.map(() => 1), ...wanted.map(({ size }) => size)].reduce(
    (sum, size) => sum + Math.ceil(size / blockSize) * blockSize,
    0,
  )
  if (needed > available)
    throw new NoSpace(
      `${prettyBinarySize(needed)} of images do not fit into ${prettyBinarySize(available)}: give the VolumeConfig IMAGECACHE a larger maxSize before installing`,
    )
  for (const folder of folders) files.mkdirAll(folder, { mode: 0o755 })
  for (const { path, target } of wanted) {
    await pipeline(files.openRead(path), files.openWrite(`${target}.tmp`), { signal })
    await files.syncFile(`${target}.tmp`)
    files.move(`${target}.tmp`, target)
  }
  return { files: wanted.length, bytes: wanted.reduce((sum, { size }) => sum + size, 0) }
}
