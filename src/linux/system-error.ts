import { constants } from 'node:os'
import type { StatusName } from '../rpc/status.ts'
import { apiStatus, statusOfErrno } from '../wire/api-status.ts'
import { errnoName } from '../wire/errno.ts'

/** A failed system call: its name, its subject and the reason. */
export class SystemError extends Error {
  override readonly name = 'SystemError'
  readonly call: string
  readonly errno: number
  readonly code: string

  /** `reason` is an errno, as a number from the kernel or by its name. */
  constructor(call: string, reason: number | keyof typeof constants.errno, subject = '', detail = '') {
    const errno = typeof reason === 'number' ? reason : constants.errno[reason]
    const code = errnoName(errno)
    super(`${call}${subject && ` ${subject}`}: ${code}${detail && ` (${detail})`}`)
    this.call = call
    this.errno = errno
    this.code = code
  }

  get [apiStatus](): StatusName {
    return statusOfErrno(this.code)
  }
}

/** Runs a node:fs call and rethrows its failure as a SystemError. */
export function translated<T>(call: string, subject: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw toSystemError(call, subject, error)
  }
}

/** Converts an error of node:fs to a SystemError; returns anything else unchanged. */
export function toSystemError(call: string, subject: string, error: unknown): unknown {
  if (error instanceof SystemError || !(error instanceof Error) || !('code' in error)) return error
  const code = String(error.code)
  const known = constants.errno[code as keyof typeof constants.errno]
  const errno = known ?? ('errno' in error && typeof error.errno === 'number' ? Math.abs(error.errno) : undefined)
  return errno === undefined ? error : new SystemError(call, errno, subject && JSON.stringify(subject))
}
