import { check, libc } from './libc.ts'

const byPointer = libc({ ioctl: { args: ['i32', 'u64', 'ptr'], returns: 'i32' } })
const byNumber = libc({ ioctl: { args: ['i32', 'u64', 'u64'], returns: 'i32' } })

/** ioctl(2) with a structure that is read or filled. */
export function ioctl(fd: number, request: number, data: Uint8Array | Uint32Array | BigUint64Array, subject = ''): number {
  return check('ioctl', byPointer().ioctl(fd, request, data), subject || `0x${request.toString(16)}`)
}

/** ioctl(2) with a plain number. */
export function ioctlNumber(fd: number, request: number, argument = 0, subject = ''): number {
  return check('ioctl', byNumber().ioctl(fd, request, argument), subject || `0x${request.toString(16)}`)
}
