import { RpcError } from '../../rpc/status.ts'
import { failedWith } from '../../wire/errno.ts'

/** Normalizes an absolute path. Throws RpcError InvalidArgument for a relative one. */
export function absolute(path: string): string {
  if (!path.startsWith('/') || path.includes('\0')) throw new RpcError('InvalidArgument', `path "${path}" must be absolute`)
  const parts: string[] = []
  for (const part of path.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return `/${parts.join('/')}`
}

/** Runs a file system call and converts its errors to statuses. */
export function translated<T>(action: string, path: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (failedWith(error, 'ENOENT', 'ENOTDIR')) throw new RpcError('NotFound', `${action} "${path}": no such file or directory`)
    if (failedWith(error, 'EACCES', 'EPERM')) throw new RpcError('PermissionDenied', `${action} "${path}": permission denied`)
    throw error
  }
}
