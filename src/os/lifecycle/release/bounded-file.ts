/** Files that come from elsewhere: written under another name first, and no larger than this machine has room for. */
import { failedWith } from '../../../wire/errno.ts'
import { parseMeminfo } from '../../../wire/proc/memory.ts'
import type { Kernel } from '../../kernel.ts'
import { ReleaseError } from './release.ts'

/** The kernel interface used here. */
export type Writing = { readonly files: Pick<Kernel['files'], 'openWrite' | 'exists' | 'removeFile'> }

/** Maximum size in bytes, several times that of a release. In memory a file may use a quarter of it at most. */
const largest = 2 ** 30
const shareOfMemory = 1 / 4

/** Bytes that a release takes at most while it is checked and written: its archive, or its image with an unpacked layer. */
const roomOfRelease = 512 * 2 ** 20

/** Whether EPHEMERAL has room for a release. Pods may have filled it, which must not keep the machine from being upgraded. */
export function hasRoom({ files }: { readonly files: Pick<Kernel['files'], 'statfs'> }): boolean {
  return files.statfs('/var').available >= roomOfRelease
}

/** The largest file that may be written, in bytes. */
export function roomFor({ files }: { readonly files: Pick<Kernel['files'], 'readText'> }, onDisk: boolean): number {
  if (onDisk) return largest
  const { memtotal = 0 } = parseMeminfo(files.readText('/proc/meminfo'))
  return Math.min(largest, memtotal * 1024 * shareOfMemory)
}

/** Writes a file of at most `room` bytes; nothing is left of one that fails. `what` names it in the ReleaseError. */
export async function writeBounded(
  { files }: Writing,
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  { room, what }: { room: number; what: string },
): Promise<void> {
  const output = files.openWrite(path, { mode: 0o600 })
  let size = 0
  const { promise: broken, reject } = Promise.withResolvers<never>()
  output.on('error', reject)
  broken.catch(() => {})
  try {
    for await (const chunk of chunks) {
      size += chunk.length
      if (size > room) throw new ReleaseError(`${what} is larger than ${Math.floor(room / 2 ** 20)} MiB, the space available on this node`)
      if (!output.write(chunk)) await Promise.race([broken, new Promise((resolve) => output.once('drain', resolve))])
    }
    await Promise.race([broken, new Promise<void>((resolve) => output.end(() => resolve()))])
  } catch (error) {
    output.destroy()
    if (files.exists(path)) files.removeFile(path)
    if (failedWith(error, 'ENOSPC')) throw new ReleaseError(`no space for ${what} on this node`)
    throw error
  }
}
