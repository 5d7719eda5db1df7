/** What node:net lacks for unix sockets: peer credentials and datagrams. */
import { closeSync, rmSync } from 'node:fs'
import { failedWith } from '../../wire/errno.ts'
import { check, cString, libc, quoted } from '../libc.ts'
import { onReadable } from '../readable.ts'
import { SystemError } from '../system-error.ts'

const c = libc({
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
  setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
  recv: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
})

const AF_UNIX = 1
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0o2000000
const SOCK_NONBLOCK = 0o4000
const SOL_SOCKET = 1
const SO_RCVBUF = 8
const SO_PEERCRED = 17

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

/** A path as struct sockaddr_un. */
function unixAddress(path: string): Buffer {
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
