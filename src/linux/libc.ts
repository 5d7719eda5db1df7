/**
 * The C library. Symbols are bound on the first call, so importing this module is harmless on other systems.
 * errno is read immediately after the call, before anything else can run on this thread.
 */
import { dlopen, type FFIFunction, type Library, type Pointer, ptr, read } from 'bun:ffi'
import { SystemError } from './system-error.ts'

const soname = 'libc.so.6'
let location: (() => unknown) | undefined

/** Declares functions of the C library; the returned function binds them on its first call. */
export function libc<const S extends Record<string, FFIFunction>>(symbols: S): () => Library<S>['symbols'] {
  let bound: Library<S>['symbols'] | undefined
  return () => {
    if (bound) return bound
    location ??= dlopen(soname, { __errno_location: { args: [], returns: 'ptr' } }).symbols.__errno_location
    bound = dlopen(soname, symbols).symbols
    return bound
  }
}

/** errno of the last failed call on this thread. */
export function errno(): number {
  const at = location?.()
  return at ? read.i32(at as Pointer, 0) : 0
}

/** Returns a result; -1 becomes a SystemError that names the call and its subject. */
export function check(call: string, result: number | bigint, subject = ''): number {
  if (result === -1 || result === -1n) {
    const reason = errno()
    throw new SystemError(call, reason, subject)
  }
  return Number(result)
}

/** A NUL-terminated string for C; a NUL inside is refused with EINVAL. */
export function cString(text: string): Buffer {
  if (text.includes('\0')) throw new SystemError('string', 'EINVAL', JSON.stringify(text), 'holds a NUL')
  return Buffer.from(`${text}\0`)
}

/** A NULL-terminated array of C strings; keep the returned object reachable during the call. */
export function cStrings(texts: readonly string[]): { pointers: BigUint64Array; strings: Buffer[] } {
  const strings = texts.map(cString)
  const pointers = new BigUint64Array(strings.length + 1)
  strings.forEach((string, index) => {
    pointers[index] = BigInt(ptr(string))
  })
  return { pointers, strings }
}

/** Quotes a path or name for a message. */
export const quoted = (text: string): string => JSON.stringify(text)

/** The string up to the first NUL in a buffer filled by C. */
export function fromCString(bytes: Uint8Array): string {
  const end = bytes.indexOf(0)
  return Buffer.from(end < 0 ? bytes : bytes.subarray(0, end)).toString()
}
