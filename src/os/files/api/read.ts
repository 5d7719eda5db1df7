import { type Method, serverStream } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { archive } from '../archive.ts'
import { gzipped } from '../gzip.ts'
import { absolute, translated } from '../path.ts'

/** Maximum number of unreadable files reported to the caller; the log has all. */
const mostReported = 20
/** Directories of kernel files, of which many are write-only or short-lived. */
const unreadable = /^\/(proc|sys)\//

/** Reads files: a single one as it is, a tree as compressed tar stream. */
export function readMethods({ kernel: { files }, log }: Pick<Machine, 'kernel' | 'log'>): Method[] {
  return [
    serverStream('machine.MachineService/Read', ['os:admin'], async function* ({ path }) {
      const file = absolute(path)
      const stats = translated('read', file, () => files.stat(file))
      if (stats.isDirectory()) throw new RpcError('InvalidArgument', `read "${file}": it is a directory, copy it instead`)
      if (stats.isSocket() || stats.isFIFO() || stats.isCharacterDevice())
        throw new RpcError('InvalidArgument', `read "${file}": it is not a regular file`)
      for await (const chunk of files.openRead(file)) yield { bytes: chunk as Uint8Array }
    }),
    serverStream('machine.MachineService/Copy', ['os:admin'], async function* ({ rootPath }) {
      const root = absolute(rootPath)
      translated('copy', root, () => files.lstat(root))
      let failed = 0
      const lines: string[] = []
      const tree = archive(files, root, (path, error) => {
        if (unreadable.test(path)) return log.debug('copy skips file', { path, error })
        log.warn('copy skips file', { path, error })
        if (++failed <= mostReported) lines.push(`\t* skipping "${path}": ${error.message}\n`)
      })
      for await (const bytes of gzipped(tree)) yield { bytes }
      // The archive is complete here; missing files are reported after it.
      if (failed > 0) yield { metadata: { error: `${failed} error${failed === 1 ? '' : 's'} occurred:\n${lines.join('')}\n` } }
    }),
  ]
}
