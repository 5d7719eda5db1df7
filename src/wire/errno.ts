/** Errors of the kernel by number and by name (errno(3)). */
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

/** Whether an error is a failed system call with one of these codes (`ENOENT`, …). */
export function failedWith(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
