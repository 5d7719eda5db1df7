import { createGzip } from 'node:zlib'
import { type Method, serverStream } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { archive } from '../archive.ts'
import { absolute, translated } from '../path.ts'

/** Contents of files: one as it is, a tree as a compressed tar stream. */
export function readMethods({ kernel: { files }, log }: Pick<Machine, 'kernel' | 'log'>): Method[] {
  return [
    serverStream('machine.MachineService/Read', ['os:admin'], async function* ({ path }) {
      const file = absolute(path)
      const stats = translated('read', file, () => files.stat(file))
      if (stats.isDirectory()) throw new RpcError('InvalidArgument', `read "${file}": it is a directory, copy it instead`)
      if (stats.isSocket() || stats.isFIFO() || stats.isCharacterDevice())
        throw new RpcError('InvalidArgument', `read "${file}": it is no regular file`)
      for await (const chunk of files.openRead(file)) yield { bytes: chunk as Uint8Array }
    }),
    serverStream('machine.MachineService/Copy', ['os:admin'], async function* ({ rootPath }, { signal }) {
      const root = absolute(rootPath)
      translated('copy', root, () => files.lstat(root))
      const gzip = createGzip({ level: 1 })
      signal.addEventListener('abort', () => gzip.destroy(), { once: true })
      const packing = pack(
        gzip,
        archive(files, root, (path, error) => log.warn('copy leaves out', { path, error })),
        signal,
      )
      try {
        for await (const chunk of gzip) yield { bytes: chunk as Uint8Array }
        await packing
      } finally {
        gzip.destroy()
      }
    }),
  ]
}

/** Feeds the compressor no faster than it works. */
async function pack(gzip: ReturnType<typeof createGzip>, chunks: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
  try {
    for await (const chunk of chunks) {
      if (signal.aborted || gzip.destroyed) return
      if (!gzip.write(chunk))
        await new Promise<void>((resolve) => {
          const go = () => {
            gzip.off('drain', go)
            gzip.off('close', go)
            resolve()
          }
          gzip.on('drain', go)
          gzip.on('close', go)
        })
    }
    gzip.end()
  } catch (error) {
    gzip.destroy(error as Error)
  }
}
