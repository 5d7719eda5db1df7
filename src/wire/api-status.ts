import type { StatusName } from '../rpc/status.ts'

/** The property by which an error class declares the status its errors have when they reach a caller of the API. */
export const apiStatus: unique symbol = Symbol('status of the API')

const byErrno: Readonly<Record<string, StatusName>> = {
  ENOENT: 'NotFound',
  ENOTDIR: 'NotFound',
  EEXIST: 'AlreadyExists',
  EACCES: 'PermissionDenied',
  EPERM: 'PermissionDenied',
  EINVAL: 'InvalidArgument',
  EISDIR: 'InvalidArgument',
  ELOOP: 'InvalidArgument',
  ENAMETOOLONG: 'InvalidArgument',
  EBUSY: 'FailedPrecondition',
  ENOTEMPTY: 'FailedPrecondition',
  EROFS: 'FailedPrecondition',
  ENOSPC: 'ResourceExhausted',
  EMFILE: 'ResourceExhausted',
  ENFILE: 'ResourceExhausted',
  ENOSYS: 'Unimplemented',
  EOPNOTSUPP: 'Unimplemented',
  ECONNREFUSED: 'Unavailable',
  ECONNRESET: 'Unavailable',
  EPIPE: 'Unavailable',
  ETIMEDOUT: 'DeadlineExceeded',
}

/** The status of a failed system call, by the name of its errno. */
export const statusOfErrno = (code: string): StatusName => byErrno[code] ?? 'Unknown'
