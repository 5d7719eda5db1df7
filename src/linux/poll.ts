/** Waits for descriptors without an event loop: for programs that do nothing but move packets. */
import { type Pointer, ptr } from 'bun:ffi'
import { errnoName } from '../wire/errno.ts'
import { errno, libc } from './libc.ts'
import { SystemError } from './system-error.ts'

const c = libc({
  poll: { args: ['ptr', 'u64', 'i32'], returns: 'i32' },
  read: { args: ['i32', 'ptr', 'u64'], returns: 'i64' },
  write: { args: ['i32', 'ptr', 'u64'], returns: 'i64' },
  writev: { args: ['i32', 'ptr', 'i32'], returns: 'i64' },
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
  const ready = unlessWaiting('poll', c().poll(list, descriptors.length, timeout)) ?? 0
  for (const [index, descriptor] of descriptors.entries()) descriptor.happened = ready > 0 ? (list[index * 2 + 1] ?? 0) >>> 16 : 0
}

/** Reads into a buffer at an offset; undefined when there is nothing to read. Throws SystemError. */
export function readInto(fd: number, buffer: Uint8Array, at: number, length: number): number | undefined {
  return unlessWaiting('read', c().read(fd, ptr(buffer, at), length))
}

/** Writes bytes; returns how many, undefined when the descriptor takes none now. Throws SystemError. */
export function writeFrom(fd: number, bytes: Uint8Array): number | undefined {
  return unlessWaiting('write', c().write(fd, bytes, bytes.length))
}

/** Bytes in pieces, for one write (struct iovec). Emptied by `clear`. */
export class Vectors {
  readonly #words: Uint32Array
  readonly #base: Pointer
  /** Buffers of the pieces, which must stay reachable; most pieces are in the buffer of the one before. */
  readonly #kept: Uint8Array[] = []
  #address = 0
  #count = 0

  /** Makes room for a number of pieces, at most 1024 (IOV_MAX). */
  constructor(size: number) {
    this.#words = new Uint32Array(size * 4)
    this.#base = ptr(this.#words)
  }

  /** Appends a piece. */
  add(buffer: Uint8Array, at: number, length: number): void {
    if (buffer !== this.#kept.at(-1)) {
      this.#kept.push(buffer)
      this.#address = ptr(buffer)
    }
    const address = this.#address + at
    this.#words[this.#count * 4] = address >>> 0
    this.#words[this.#count * 4 + 1] = Math.floor(address / 2 ** 32)
    this.#words[this.#count * 4 + 2] = length
    this.#count++
  }

  clear(): void {
    this.#count = 0
    this.#kept.length = 0
  }

  /** Writes the pieces; returns how many bytes, undefined when the descriptor takes none now. Throws SystemError. */
  write(fd: number): number | undefined {
    return unlessWaiting('writev', c().writev(fd, this.#base, this.#count))
  }
}

/** No error is made when there is nothing to do, as that is as frequent as packets. */
function unlessWaiting(call: string, result: number | bigint): number | undefined {
  if (result >= 0) return Number(result)
  const reason = errno()
  if (['EAGAIN', 'EINTR'].includes(errnoName(reason))) return undefined
  throw new SystemError(call, reason)
}
