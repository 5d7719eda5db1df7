import type { LogQuery } from '../../supervise/log-ring.ts'
import type { Kernel } from '../kernel.ts'

const chunk = 64 * 1024
const newline = 10
const pause = 250

/** A file's bytes, from so many lines before its end, and what is added to it; a file that has shrunk is read anew. */
export async function* followFile(
  { files }: Pick<Kernel, 'files'>,
  path: string,
  { tailLines, follow, signal }: LogQuery,
): AsyncGenerator<Uint8Array> {
  let at = tailLines === undefined || tailLines < 0 ? 0 : await tailOf(files, path, tailLines)
  while (!signal?.aborted) {
    const { size } = files.stat(path)
    if (size < at) at = 0
    const bytes = await files.readSlice(path, at, Math.min(chunk, size - at))
    if (bytes.length > 0) {
      at += bytes.length
      yield bytes
    } else if (follow) await new Promise((resolve) => setTimeout(resolve, pause))
    else return
  }
}

/** Where the last so many lines begin. */
async function tailOf(files: Kernel['files'], path: string, lines: number): Promise<number> {
  const { size } = files.stat(path)
  let left = lines
  // The newline that ends the last line does not begin another one.
  let end = size - 1
  while (end > 0 && left > 0) {
    const start = Math.max(0, end - chunk)
    const bytes = await files.readSlice(path, start, end - start)
    for (let i = bytes.length - 1; i >= 0; i--) if (bytes[i] === newline && --left === 0) return start + i + 1
    end = start
  }
  return left === 0 ? size : 0
}
