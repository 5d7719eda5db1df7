/**
 * A log file that is renamed and begun anew when it is large (`0.log`, then `0.log.20261122-101500`, compressed later):
 * each line once, in order, also of files that came and went between two looks.
 */
import type { LogQuery } from '../../supervise/log-ring.ts'
import type { Kernel } from '../kernel.ts'

type Files = Pick<Kernel['files'], 'openHandle' | 'list' | 'read' | 'lstatIfThere'>
type Handle = ReturnType<Files['openHandle']>

const chunk = 64 * 1024
const newline = 10
const pause = 250
/** A compressed log of the kubelet is a part of this; more is no log of its. */
const compressedLimit = 256 << 20

/** A file's bytes, from so many lines before its end, and what is added to it and to those that come in its place. */
export async function* followFile(
  { files }: { files: Files },
  path: string,
  { tailLines, follow, signal }: LogQuery,
): AsyncGenerator<Uint8Array> {
  let known = rotated(files, path)
  let handle = files.openHandle(path)
  try {
    let at = tailLines === undefined || tailLines < 0 ? 0 : tailOf(handle, tailLines)
    for (;;) {
      at = yield* rest(handle, at, signal)
      if (!follow || signal?.aborted) return
      const { ino } = files.lstatIfThere(path) ?? {}
      if (ino === undefined || ino === handle.ino) {
        await wait(signal)
        continue
      }
      // Whoever writes has the new file open before the last bytes of the old one are there for all to see.
      await wait(signal)
      yield* rest(handle, at, signal)
      const now = rotated(files, path)
      const between = [...now.keys()].filter((name) => !known.has(name)).toSorted()
      for (const name of between.slice(1)) yield* whole(files, now.get(name) ?? name, signal)
      const next = files.openHandle(path)
      handle.close()
      handle = next
      known = now
      at = 0
    }
  } finally {
    handle.close()
  }
}

/** What is behind this place; gives the place then reached. A file that has shrunk is read anew. */
async function* rest(handle: Handle, from: number, signal?: AbortSignal): AsyncGenerator<Uint8Array, number> {
  let at = from
  while (!signal?.aborted) {
    const size = handle.size()
    if (size < at) at = 0
    const bytes = handle.read(at, Math.min(chunk, size - at))
    if (bytes.length === 0) break
    at += bytes.length
    yield bytes
  }
  return at
}

/** All of a file that was put aside. */
async function* whole(files: Files, path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  if (path.endsWith('.gz')) {
    yield Bun.gunzipSync(files.read(path, { limit: compressedLimit }) as Uint8Array<ArrayBuffer>)
    return
  }
  const handle = files.openHandle(path)
  try {
    yield* rest(handle, 0, signal)
  } finally {
    handle.close()
  }
}

/** Files put aside, by their names before they were compressed. */
function rotated(files: Files, path: string): Map<string, string> {
  const slash = path.lastIndexOf('/')
  const [folder, base] = [path.slice(0, slash), path.slice(slash + 1)]
  const names = files.list(folder).filter((name) => name.startsWith(`${base}.`) && !name.endsWith('.tmp'))
  return new Map(names.toSorted().map((name) => [name.replace(/\.gz$/, ''), `${folder}/${name}`]))
}

/** Where the last so many lines begin. */
function tailOf(handle: Handle, lines: number): number {
  const size = handle.size()
  let left = lines
  // The newline that ends the last line does not begin another one.
  let end = size - 1
  while (end > 0 && left > 0) {
    const start = Math.max(0, end - chunk)
    const bytes = handle.read(start, end - start)
    for (let i = bytes.length - 1; i >= 0; i--) if (bytes[i] === newline && --left === 0) return start + i + 1
    end = start
  }
  return left === 0 ? size : 0
}

function wait(signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, pause)
    signal?.addEventListener('abort', done)
  })
}
