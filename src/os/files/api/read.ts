import { type Method, serverStream } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { archive } from '../archive.ts'
import { gzipped } from '../gzip.ts'
import { absolute, translated } from '../path.ts'

/** What the kernel makes is often only to be written, or gone by now. */
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
      const tree = archive(files, root, (path, error) => (unreadable.test(path) ? log.debug : log.warn)('copy leaves out', { path, error }))
      for await (const bytes of gzipped(tree)) yield { bytes }
    }),
  ]
}
