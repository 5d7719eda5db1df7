/**
 * Follows a log file that is rotated when it is large (`0.log`, then `0.log.20261122-101500`, compressed later): yields each line
 * once, in order, including files that came and went between two polls.
 */
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { LogQuery } from '../../supervise/log-ring.ts'
import { pause } from '../../timing/pause.ts'
import type { Kernel } from '../kernel.ts'

type Files = Pick<Kernel['files'], 'openHandle' | 'list' | 'lstatIfThere'>
type Handle = ReturnType<Files['openHandle']>

const chunk = 64 * 1024
const newline = 10
const pollInterval = 250
/** The kubelet checks sizes every ten seconds: the limit is what a container writes in that time. */
const unpackedLimit = 1 << 30

/** A file's bytes, from so many lines before its end, and what is appended to it and to its successors. */
export async function* followFile(
  { files }: { files: Files },
  path: string,
  { tailLines, follow, signal }: LogQuery,
  { below, limit = unpackedLimit }: { below?: string; limit?: number } = {},
): AsyncGenerator<Uint8Array> {
  const open = (name: string) => files.openHandle(name, { below })
  let known = rotated(files, path)
  let handle = open(path)
  try {
    let at = tailLines === undefined || tailLines < 0 ? 0 : await tailOf(handle, tailLines, signal)
    for (;;) {
      at = yield* rest(handle, at, signal)
      if (!follow || signal?.aborted) return
      const { ino } = files.lstatIfThere(path) ?? {}
      if (ino === undefined || ino === handle.ino) {
        await pause(pollInterval, signal)
        continue
      }
      // The writer has opened the new file before the last bytes of the old one are visible.
      await pause(pollInterval, signal)
      yield* rest(handle, at, signal)
      const now = rotated(files, path)
      const between = [...now.keys()].filter((name) => !known.has(name)).toSorted()
      for (const name of between.slice(1)) yield* whole(open, now.get(name) ?? name, limit, signal)
      const next = open(path)
      handle.close()
      handle = next
      known = now
      at = 0
    }
  } finally {
    handle.close()
  }
}

/** Reads from an offset; returns the offset reached. A file that has shrunk is read from its start. */
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

/** All of a rotated file; of a compressed one at most `limit` bytes. */
async function* whole(open: (path: string) => Handle, path: string, limit: number, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  const handle = open(path)
  try {
    yield* path.endsWith('.gz') ? unpacked(handle, path, limit, signal) : rest(handle, 0, signal)
  } finally {
    handle.close()
  }
}

/** Decompressed in threads of the runtime, and only as fast as it is read. */
async function* unpacked(handle: Handle, path: string, limit: number, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: chunk })
  pipeline(Readable.from(rest(handle, 0, signal), { objectMode: false }), gunzip, () => {}) // errors come out of gunzip too
  let left = limit
  for await (const bytes of gunzip as AsyncIterable<Uint8Array>) {
    if (signal?.aborted) return
    yield bytes.subarray(0, left)
    left -= bytes.length
    if (left > 0) continue
    yield Buffer.from(`\n"${path}" holds more than ${limit} bytes: the rest of it is left out\n`)
    return
  }
}

/** Rotated files, by their names before compression. */
function rotated(files: Files, path: string): Map<string, string> {
  const slash = path.lastIndexOf('/')
  const [folder, base] = [path.slice(0, slash), path.slice(slash + 1)]
  const names = files.list(folder).filter((name) => name.startsWith(`${base}.`) && !name.endsWith('.tmp'))
  return new Map(names.toSorted().map((name) => [name.replace(/\.gz$/, ''), `${folder}/${name}`]))
}

/** The offset of the last so many lines; 0 once the signal is aborted. Other work continues between the pieces of a large file. */
async function tailOf(handle: Handle, lines: number, signal?: AbortSignal): Promise<number> {
  const size = handle.size()
  let left = lines
  // The newline that ends the last line does not start another one.
  let end = size - 1
  while (end > 0 && left > 0) {
    const start = Math.max(0, end - chunk)
    const bytes = handle.read(start, end - start)
    for (let i = bytes.length - 1; i >= 0; i--) if (bytes[i] === newline && --left === 0) return start + i + 1
    end = start
    await new Promise((resolve) => setImmediate(resolve))
    if (signal?.aborted) return 0
  }
  return left === 0 ? size : 0
}
