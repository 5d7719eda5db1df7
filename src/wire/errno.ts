/** Errors of the kernel by number and by name (errno(3)). */
import { constants } from 'node:os'
import { messageOf } from './error-message.ts'

const names = new Map<number, string>(Object.entries(constants.errno).map(([name, number]) => [number, name]))
names.set(11, 'EAGAIN')
names.set(22, 'EINVAL')
names.set(95, 'EOPNOTSUPP')
for (const [number, name] of [
  [77, 'EBADFD'],
  [85, 'ERESTART'],
  [112, 'EHOSTDOWN'],
  [117, 'EUCLEAN'],
  [121, 'EREMOTEIO'],
  [123, 'ENOMEDIUM'],
  [126, 'ENOKEY'],
  [524, 'ENOTSUPP'],
] as const)
  names.set(number, name)

const known = new Set(names.values())

/** The name of an errno value, `E<number>` when it has none. */
export function errnoName(errno: number): string {
  return names.get(errno) ?? `E${errno}`
}

/** The errno name of a failed system call (`ENOSPC`), also as the cause of other errors; undefined for any other error. */
export function errnoOf(error: unknown): string | undefined {
  const seen = new Set<unknown>()
  for (let at = error; at instanceof Error && !seen.has(at); at = at.cause) {
    seen.add(at)
    if ('code' in at && typeof at.code === 'string' && known.has(at.code)) return at.code
  }
  return undefined
}

/** Whether an error is a failed system call with one of these codes (`ENOENT`, …). */
export function failedWith(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}

/** The code of an error (`ENOENT`, …) for a message, or its own message when it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : messageOf(error)
}
