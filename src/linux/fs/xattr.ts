import { check, cString, libc, quoted } from '../libc.ts'
import { SystemError } from '../system-error.ts'

const c = libc({
  lgetxattr: { args: ['ptr', 'ptr', 'ptr', 'u64'], returns: 'i64' },
  lsetxattr: { args: ['ptr', 'ptr', 'ptr', 'u64', 'i32'], returns: 'i32' },
  llistxattr: { args: ['ptr', 'ptr', 'u64'], returns: 'i64' },
})

/** An extended attribute of a file or link; undefined when it does not exist. */
export function getXattr(path: string, name: string): Uint8Array | undefined {
  const value = Buffer.alloc(1 << 16) // XATTR_SIZE_MAX
  try {
    return value.subarray(0, check('getxattr', c().lgetxattr(cString(path), cString(name), value, value.length), `${quoted(path)} ${name}`))
  } catch (error) {
    if (error instanceof SystemError && ['ENODATA', 'EOPNOTSUPP', 'ENOTSUP'].includes(error.code)) return undefined
    throw error
  }
}

/** The names of the extended attributes of a file or link. */
export function listXattrs(path: string): string[] {
  const names = Buffer.alloc(1 << 16) // XATTR_LIST_MAX
  try {
    const length = check('listxattr', c().llistxattr(cString(path), names, names.length), quoted(path))
    return names.toString('utf8', 0, length).split('\0').filter(Boolean)
  } catch (error) {
    if (error instanceof SystemError && ['EOPNOTSUPP', 'ENOTSUP'].includes(error.code)) return []
    throw error
  }
}

/** Sets an extended attribute of a file or link. */
export function setXattr(path: string, name: string, value: Uint8Array): void {
  check('setxattr', c().lsetxattr(cString(path), cString(name), value, value.length, 0), `${quoted(path)} ${name}`)
}
