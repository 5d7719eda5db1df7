/**
 * The status of a call, and the one place where errors of this system are mapped to it.
 * Names are the ones users see: `rpc error: code = NotFound desc = …`.
 */

/** gRPC status codes by name. */
export const statusCode = {
  OK: 0,
  Canceled: 1,
  Unknown: 2,
  InvalidArgument: 3,
  DeadlineExceeded: 4,
  NotFound: 5,
  AlreadyExists: 6,
  PermissionDenied: 7,
  ResourceExhausted: 8,
  FailedPrecondition: 9,
  Aborted: 10,
  OutOfRange: 11,
  Unimplemented: 12,
  Internal: 13,
  Unavailable: 14,
  DataLoss: 15,
  Unauthenticated: 16,
} as const

/** The name of a status. */
export type StatusName = keyof typeof statusCode

const names = Object.keys(statusCode) as StatusName[]

/** The name of a code; unknown codes are Unknown. */
export function statusName(code: number): StatusName {
  return names[code] ?? 'Unknown'
}

/** Maximum bytes of an error message: errors often quote requests, and are sent in a header. */
export const maxErrorText = 4096

/** A failed call: callers branch on `status`; the message is for people and is truncated when too long. */
export class RpcError extends Error {
  constructor(
    readonly status: StatusName,
    message: string,
    options?: ErrorOptions,
  ) {
    super(cut(message), options)
    this.name = 'RpcError'
  }

  get code(): number {
    return statusCode[this.status]
  }
}

function cut(text: string): string {
  // A UTF-16 code unit takes at most three bytes in UTF-8.
  if (text.length * 3 <= maxErrorText) return text
  const bytes = Buffer.from(text.slice(0, maxErrorText))
  if (bytes.length <= maxErrorText && text.length <= maxErrorText) return text
  const ellipsis = '…'
  let end = Math.min(bytes.length, maxErrorText - Buffer.byteLength(ellipsis))
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + ellipsis
}

/** `rpc error: code = NotFound desc = …`, as the field's tools print it. */
export function describeRpcError({ status, message }: RpcError): string {
  return `rpc error: code = ${status} desc = ${message}`
}

const byReason: Record<string, StatusName> = {
  'not-found': 'NotFound',
  exists: 'AlreadyExists',
  conflict: 'FailedPrecondition',
  phase: 'InvalidArgument',
  finalizers: 'FailedPrecondition',
  owner: 'PermissionDenied',
  invalid: 'InvalidArgument',
  overrun: 'FailedPrecondition',
}

const byErrno: Record<string, StatusName> = {
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

const byName: Record<string, StatusName> = {
  ConfigError: 'InvalidArgument',
  ProtoError: 'InvalidArgument',
  AbortError: 'Canceled',
  TimeoutError: 'DeadlineExceeded',
}

/** The status for any error. Errors are recognized by their fields, so that no class of another room is imported here. */
export function toRpcError(error: unknown): RpcError {
  if (error instanceof RpcError) return error
  if (!(error instanceof Error)) return new RpcError('Unknown', String(error))
  const { reason, errno, code } = error as { reason?: unknown; errno?: unknown; code?: unknown }
  const status =
    byName[error.name] ?? (typeof reason === 'string' ? byReason[reason] : undefined) ?? named(errno) ?? named(code) ?? ('Unknown' as const)
  return new RpcError(status, error.message, { cause: error })
}

function named(value: unknown): StatusName | undefined {
  return typeof value === 'string' ? byErrno[value] : undefined
}
