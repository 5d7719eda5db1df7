/** A unix stream listener without an event loop (unix(7)); its descriptors do not block. */
import { chmodSync, closeSync, mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { failedWith } from '../../wire/errno.ts'
import { check, libc, quoted } from '../libc.ts'
import { unixAddress } from './socket.ts'
import { SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM } from './socket-constants.ts'

const c = libc({
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  listen: { args: ['i32', 'i32'], returns: 'i32' },
  accept4: { args: ['i32', 'ptr', 'ptr', 'i32'], returns: 'i32' },
})

const AF_UNIX = 1

/** Listens at a path for processes of the same user, where it replaces a leftover socket; returns the descriptor. Throws SystemError. */
export function listenUnix(path: string): number {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  rmSync(path, { force: true })
  const fd = check('socket', c().socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), 'unix')
  try {
    const address = unixAddress(path)
    check('bind', c().bind(fd, address, address.length), quoted(path))
    chmodSync(path, 0o600)
    check('listen', c().listen(fd, 8), quoted(path))
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** Accepts a connection; undefined when none waits. Throws SystemError. */
export function acceptUnix(fd: number): number | undefined {
  try {
    return check('accept4', c().accept4(fd, null, null, SOCK_CLOEXEC | SOCK_NONBLOCK))
  } catch (error) {
    if (failedWith(error, 'EAGAIN', 'EINTR', 'ECONNABORTED')) return undefined
    throw error
  }
}
