import { check, errno, libc } from './libc.ts'

const c = libc({ poll: { args: ['ptr', 'u64', 'i32'], returns: 'i32' } })

/** What poll(2) waits for and reports. */
export const pollEvents = { in: 1, pri: 2, out: 4, err: 8, hup: 16, invalid: 32 } as const

/** Waits (blocking this thread) until one of the descriptors has something; gives the returned events of each, all 0 after the timeout. */
export function poll(fds: readonly { fd: number; events: number }[], timeoutMs: number): number[] {
  const table = Buffer.alloc(fds.length * 8) // struct pollfd
  fds.forEach(({ fd, events }, index) => {
    table.writeInt32LE(fd, index * 8)
    table.writeInt16LE(events, index * 8 + 4)
  })
  const result = c().poll(table, fds.length, timeoutMs)
  if (result === -1 && errno() !== 4) check('poll', result) // EINTR counts as nothing yet
  return fds.map((_, index) => table.readInt16LE(index * 8 + 6))
}
