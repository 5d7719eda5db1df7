/** Waits for descriptors without an event loop: for programs that do nothing but move packets. */
import { failedWith } from '../wire/errno.ts'
import { check, libc } from './libc.ts'

const c = libc({
  poll: { args: ['ptr', 'u64', 'i32'], returns: 'i32' },
  read: { args: ['i32', 'ptr', 'u64'], returns: 'i64' },
  write: { args: ['i32', 'ptr', 'u64'], returns: 'i64' },
})

/** Events (poll(2)): POLLIN and POLLOUT. */
export const readable = 1
export const writable = 4

/** A descriptor with the events it waits for; `poll` sets the events that happened. */
export interface Polled {
  readonly fd: number
  events: number
  happened: number
}

/** Blocks this thread until a descriptor has an event or the time (milliseconds, -1 for ever) is over. Throws SystemError. */
export function poll(descriptors: readonly Polled[], timeout: number): void {
  const list = new Int32Array(descriptors.length * 2)
  for (const [index, { fd, events }] of descriptors.entries()) {
    list[index * 2] = fd
    list[index * 2 + 1] = events
  }
  const ready = unlessWaiting(() => check('poll', c().poll(list, descriptors.length, timeout))) ?? 0
  for (const [index, descriptor] of descriptors.entries()) descriptor.happened = ready > 0 ? (list[index * 2 + 1] ?? 0) >>> 16 : 0
}

/** Reads into a buffer at an offset; undefined when there is nothing to read. Throws SystemError. */
export function readInto(fd: number, buffer: Uint8Array, at: number, length: number): number | undefined {
  return unlessWaiting(() => check('read', c().read(fd, buffer.subarray(at), length)))
}

/** Writes bytes; returns how many, undefined when the descriptor takes none now. Throws SystemError. */
export function writeFrom(fd: number, bytes: Uint8Array): number | undefined {
  return unlessWaiting(() => check('write', c().write(fd, bytes, bytes.length)))
}

function unlessWaiting(call: () => number): number | undefined {
  try {
    return call()
  } catch (error) {
    if (failedWith(error, 'EAGAIN', 'EINTR')) return undefined
    throw error
  }
}
