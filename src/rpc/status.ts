/**
 * The status of a call, and the one place where errors of this system are mapped to it.
 * Names are the ones users see: `rpc error: code = NotFound desc = …`.
 */
import { apiStatus, statusOfErrno } from '../wire/api-status.ts'

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

/** A call failed before it was made: there is no connection to the server. */
export class ConnectError extends RpcError {}

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

/**
 * The status for any error: own classes declare theirs (`apiStatus`). The runtime's errors have only a name (DOMException of an
 * aborted signal) or the code of a failed system call.
 */
export function toRpcError(error: unknown): RpcError {
  if (error instanceof RpcError) return error
  if (!(error instanceof Error)) return new RpcError('Unknown', String(error))
  const { [apiStatus]: declared, code } = error as { [apiStatus]?: StatusName; code?: unknown }
  const status = declared ?? aborted[error.name] ?? (typeof code === 'string' ? statusOfErrno(code) : 'Unknown')
  return new RpcError(status, error.message, { cause: error })
}

const aborted: Readonly<Record<string, StatusName>> = { AbortError: 'Canceled', TimeoutError: 'DeadlineExceeded' }
