import { readText, writeInto } from '../fs/files.ts'
import { SystemError } from '../system-error.ts'

/** The file of a parameter below /proc/sys; dots separate levels, unless the name contains slashes, which then do. */
export function sysctlPath(name: string): string {
  const first = /[./]/.exec(name)?.[0]
  const path = first === '/' ? name : name.replace(/[./]/g, (mark) => (mark === '.' ? '/' : '.'))
  if (path.split('/').some((part) => part === '' || part === '.' || part === '..'))
    throw new SystemError('find sysctl', 'EINVAL', JSON.stringify(name))
  return `/proc/sys/${path}`
}

/** The value of a kernel parameter. */
export function getSysctl(name: string): string {
  return readText(sysctlPath(name), { limit: 1 << 16 }).trim()
}

/** Sets a kernel parameter of this (network, ipc, …) namespace. */
export function setSysctl(name: string, value: string): void {
  writeInto(sysctlPath(name), value)
}
