import { constants } from 'node:os'

const names = new Map<number, string>(Object.entries(constants.errno).map(([name, number]) => [number, name]))
names.set(11, 'EAGAIN')
names.set(22, 'EINVAL')
names.set(95, 'EOPNOTSUPP')
for (const [number, name] of [
  [85, 'ERESTART'],
  [112, 'EHOSTDOWN'],
  [117, 'EUCLEAN'],
  [121, 'EREMOTEIO'],
  [123, 'ENOMEDIUM'],
  [126, 'ENOKEY'],
  [524, 'ENOTSUPP'],
] as const)
  names.set(number, name)

/** The name of an errno value, `E<number>` when it has none. */
export function errnoName(errno: number): string {
  return names.get(errno) ?? `E${errno}`
}

/** A system call that failed: which, on what, and why. */
export class SystemError extends Error {
  override readonly name = 'SystemError'
  readonly call: string
  readonly errno: number
  readonly code: string

  constructor(call: string, errno: number, subject = '', detail = '') {
    const code = errnoName(errno)
    super(`${call}${subject && ` ${subject}`}: ${code}${detail && ` (${detail})`}`)
    this.call = call
    this.errno = errno
    this.code = code
  }
}

/** Whether an error is a failed system call with one of these codes (`ENOENT`, …). */
export function failedWith(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}

/** Runs a node:fs call and rethrows its failure as a SystemError. */
export function translated<T>(call: string, subject: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw toSystemError(call, subject, error)
  }
}

/** Turns what node:fs throws into a SystemError; anything else passes unchanged. */
export function toSystemError(call: string, subject: string, error: unknown): unknown {
  if (error instanceof SystemError || !(error instanceof Error) || !('code' in error)) return error
  const code = String(error.code)
  const known = constants.errno[code as keyof typeof constants.errno]
  const errno = known ?? ('errno' in error && typeof error.errno === 'number' ? Math.abs(error.errno) : undefined)
  return errno === undefined ? error : new SystemError(call, errno, subject && JSON.stringify(subject))
}
