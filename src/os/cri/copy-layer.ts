/**
 * Real copies of small layers. The folder of a large layer is a bind mount of the root file system's; the runtime clones the
 * folder of the snapshots for a pod with a user namespace without what is mounted below it, so such a layer would be empty there.
 * The image of every pod's sandbox is a few hundred bytes: as a real layer it works in every pod.
 */
import type { Kernel } from '../kernel.ts'

type Files = Pick<
  Kernel['files'],
  'walk' | 'read' | 'readlink' | 'writeAtomic' | 'mkdirAll' | 'symlink' | 'lstatIfThere' | 'lchown' | 'removeFile'
>

/** The most bytes of files, and the most entries, of a layer that is copied. */
const limits = { bytes: 64 << 10, entries: 100 }

/** Copies a layer's folder, and completes an earlier copy; false, with nothing changed, when the layer is too large for it. */
export async function copyLayer(files: Files, source: string, target: string): Promise<boolean> {
  const entries = []
  let bytes = 0
  for await (const entry of files.walk(source)) {
    if (!entry.stats) throw entry.error ?? new Error(`copy layer "${source}": "${entry.path}" cannot be read`)
    entries.push({ ...entry, stats: entry.stats })
    bytes += entry.stats.isFile() ? entry.stats.size : 0
    const copied = entry.stats.isFile() || entry.stats.isDirectory() || entry.stats.isSymbolicLink()
    if (!copied || bytes > limits.bytes || entries.length > limits.entries) return false
  }
  for (const { path, relative, stats } of entries) {
    const to = relative === '' ? target : `${target}/${relative}`
    const owner = { mode: stats.mode & 0o7777, uid: stats.uid, gid: stats.gid }
    if (stats.isDirectory()) files.mkdirAll(to, owner)
    else if (stats.isSymbolicLink()) {
      if (files.lstatIfThere(to)) files.removeFile(to)
      files.symlink(files.readlink(path), to)
      files.lchown(to, stats.uid, stats.gid)
    } else if (files.lstatIfThere(to)?.size !== stats.size) await files.writeAtomic(to, files.read(path), owner)
  }
  return true
}
