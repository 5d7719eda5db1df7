/** What node:net lacks for unix sockets: peer credentials, descriptors sent to the peer, and datagrams. */

import { ptr } from 'bun:ffi'
import { closeSync, rmSync } from 'node:fs'
import { failedWith } from '../../wire/errno.ts'
import { ioctl } from '../ioctl.ts'
import { check, cString, libc, quoted } from '../libc.ts'
import { onReadable } from '../readable.ts'
import { SystemError } from '../system-error.ts'
import { MSG_DONTWAIT, SO_RCVBUF, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_NONBLOCK, SOL_SOCKET } from './socket-constants.ts'

const c = libc({
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
  setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
  recv: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
  sendmsg: { args: ['i32', 'ptr', 'i32'], returns: 'i64' },
})

const AF_UNIX = 1
const SO_PEERCRED = 17
const SCM_RIGHTS = 1
const MSG_NOSIGNAL = 0x4000
const SIOCOUTQ = 0x5411

/** The process that opened the other end of a unix stream socket. */
export interface PeerCredentials {
  pid: number
  uid: number
  gid: number
}

/** Credentials of the peer of a connected unix socket (SO_PEERCRED). */
export function peerCredentials(fd: number): PeerCredentials {
  const bytes = Buffer.alloc(12)
  check('getsockopt', c().getsockopt(fd, SOL_SOCKET, SO_PEERCRED, bytes, Uint32Array.of(12)), 'SO_PEERCRED')
  return { pid: bytes.readInt32LE(0), uid: bytes.readUInt32LE(4), gid: bytes.readUInt32LE(8) }
}

/**
 * Sends bytes with copies of descriptors over a connected unix socket (SCM_RIGHTS); nothing else may wait to be written there.
 * Throws EAGAIN when the peer does not read; a message that was sent only in part is EMSGSIZE, and the connection is of no more use.
 */
export function sendDescriptors(fd: number, bytes: Uint8Array, descriptors: readonly number[]): void {
  const space = 16 + Math.ceil((descriptors.length * 4) / 8) * 8
  // struct cmsghdr: length, level, type, then the descriptors.
  const control = Buffer.alloc(space)
  control.writeBigUInt64LE(BigInt(16 + descriptors.length * 4), 0)
  control.writeInt32LE(SOL_SOCKET, 8)
  control.writeInt32LE(SCM_RIGHTS, 12)
  for (const [index, descriptor] of descriptors.entries()) control.writeInt32LE(descriptor, 16 + index * 4)
  const vector = BigUint64Array.of(BigInt(ptr(bytes)), BigInt(bytes.length))
  // struct msghdr: name, its length, vectors, their number, control data, its length, flags.
  const message = BigUint64Array.of(0n, 0n, BigInt(ptr(vector)), 1n, BigInt(ptr(control)), BigInt(space), 0n)
  const sent = check('sendmsg', c().sendmsg(fd, message, MSG_DONTWAIT | MSG_NOSIGNAL))
  if (sent !== bytes.length) throw new SystemError('sendmsg', 'EMSGSIZE', '', `${sent} of ${bytes.length} bytes sent`)
}

/** Bytes that were written to a TCP socket and that the peer has not acknowledged (SIOCOUTQ, tcp(7)). */
export function unacknowledged(fd: number): number {
  const bytes = new Uint32Array(1)
  ioctl(fd, SIOCOUTQ, bytes, 'SIOCOUTQ')
  return bytes[0] ?? 0
}

/** A path as struct sockaddr_un. */
export function unixAddress(path: string): Buffer {
  const name = cString(path)
  if (name.length > 108) throw new SystemError('bind', 'ENAMETOOLONG', quoted(path), 'a unix socket path has at most 107 bytes')
  return Buffer.concat([Buffer.from([AF_UNIX, 0]), name])
}

/** A unix datagram socket at a path, such as /dev/log. */
export interface DatagramSocket {
  readonly path: string
  close(): void
}

const maxDatagram = 1 << 16
const maxBurst = 256

/** Receives datagrams at a path, where it replaces a leftover socket; datagrams are truncated at 64 KiB. */
export function listenDatagrams(path: string, receive: (datagram: Uint8Array) => void): DatagramSocket {
  rmSync(path, { force: true })
  const fd = check('socket', c().socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), 'unix')
  let open = true
  let deaf = () => {}
  const buffer = Buffer.alloc(maxDatagram)
  const drain = () => {
    for (let count = 0; open; count++) {
      if (count === maxBurst) {
        setImmediate(drain) // others want the thread too
        return
      }
      const length = receiveOne(fd, buffer)
      if (length === undefined) return
      receive(Uint8Array.prototype.slice.call(buffer, 0, length))
    }
  }
  const close = () => {
    if (!open) return
    open = false
    deaf()
    closeSync(fd)
    rmSync(path, { force: true })
  }
  try {
    const address = unixAddress(path)
    check('bind', c().bind(fd, address, address.length), quoted(path))
    c().setsockopt(fd, SOL_SOCKET, SO_RCVBUF, Int32Array.of(1 << 20), 4) // as large as allowed
    deaf = onReadable(fd, drain)
  } catch (error) {
    close()
    throw error
  }
  drain()
  return { path, close }
}

function receiveOne(fd: number, buffer: Buffer): number | undefined {
  try {
    return check('recv', c().recv(fd, buffer, buffer.length, 0))
  } catch (error) {
    if (failedWith(error, 'EAGAIN', 'EINTR')) return undefined
    throw error
  }
}
