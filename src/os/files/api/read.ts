import { type Method, serverStream } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { archive } from '../archive.ts'
import { gzipped } from '../gzip.ts'
import { absolute, translated } from '../path.ts'

/** What the kernel makes is often only to be written, or gone by now. */
/** So many files that could not be read are named to the caller; the log names all. */
const mostReported = 20
const unreadable = /^\/(proc|sys)\//

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
    serverStream('machine.MachineService/Copy', ['os:admin'], async function* ({ rootPath }) {
      const root = absolute(rootPath)
      translated('copy', root, () => files.lstat(root))
      let failed = 0
      const lines: string[] = []
      const tree = archive(files, root, (path, error) => {
        if (unreadable.test(path)) return log.debug('copy leaves out', { path, error })
        log.warn('copy leaves out', { path, error })
        if (++failed <= mostReported) lines.push(`\t* skipping "${path}": ${error.message}\n`)
      })
      for await (const bytes of gzipped(tree)) yield { bytes }
      // The archive is whole by now; that files are missing from it is told behind it.
      if (failed > 0) yield { metadata: { error: `${failed} error${failed === 1 ? '' : 's'} occurred:\n${lines.join('')}\n` } }
    }),
  ]
}
