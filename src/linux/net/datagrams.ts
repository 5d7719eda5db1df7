/** UDP sockets that send and receive many datagrams a call (udp(7), recvmmsg(2), sendmmsg(2)). */
import { ptr } from 'bun:ffi'
import { closeSync } from 'node:fs'
import { failedWith } from '../../wire/errno.ts'
import { check, libc } from '../libc.ts'
import { SO_RCVBUF, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_NONBLOCK, SOL_SOCKET } from './socket-constants.ts'

const c = libc({
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  getsockname: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
  setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
  recvmmsg: { args: ['i32', 'ptr', 'u32', 'i32', 'ptr'], returns: 'i32' },
  sendmmsg: { args: ['i32', 'ptr', 'u32', 'i32'], returns: 'i32' },
})

const families = { inet: 2, inet6: 10 } as const
const SO_SNDBUF = 7
const SO_MARK = 36
const IPPROTO_IPV6 = 41
const IPV6_V6ONLY = 26
const bufferSize = 7 << 20
const batch = 64
const slotSize = 65_536
const addressSize = 28
/** struct mmsghdr: struct msghdr (name, its length, vectors, their number, control data, its length, flags), then the length received. */
const headerSize = 64
const headerAt = { name: 0, nameLength: 8, vectors: 16, vectorCount: 24, length: 56 } as const
const vectorSize = 16

/** Headers for a batch, each with one vector and one address. */
class Batch {
  readonly headers = Buffer.alloc(batch * headerSize)
  readonly vectors = new BigUint64Array(batch * 2)
  readonly addresses = Buffer.alloc(batch * addressSize)

  constructor() {
    const vectors = ptr(this.vectors)
    const addresses = ptr(this.addresses)
    for (let index = 0; index < batch; index++) {
      const at = index * headerSize
      this.headers.writeBigUInt64LE(BigInt(addresses + index * addressSize), at + headerAt.name)
      this.headers.writeBigUInt64LE(BigInt(vectors + index * vectorSize), at + headerAt.vectors)
      this.headers.writeBigUInt64LE(1n, at + headerAt.vectorCount)
    }
  }
}

/** A UDP socket of one address family on all addresses. */
export class DatagramPort {
  readonly fd: number
  /** The port it is bound to. */
  readonly port: number
  readonly #received = new Batch()
  readonly #slots = Buffer.alloc(batch * slotSize)
  readonly #queued = new Batch()
  /** Buffers of queued datagrams, which must stay reachable. */
  readonly #kept: Uint8Array[] = []

  /** Binds a port, 0 for any free one. Throws SystemError, such as EADDRINUSE. */
  constructor(family: keyof typeof families, port: number) {
    const subject = `UDP port ${port}`
    this.fd = check('socket', c().socket(families[family], SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), subject)
    try {
      if (family === 'inet6') this.#set(IPPROTO_IPV6, IPV6_V6ONLY, 1)
      for (const option of [SO_RCVBUF, SO_SNDBUF]) this.#set(SOL_SOCKET, option, bufferSize)
      const address = Buffer.alloc(family === 'inet' ? 16 : addressSize)
      address.writeUInt16LE(families[family], 0)
      address.writeUInt16BE(port, 2)
      check('bind', c().bind(this.fd, address, address.length), subject)
      check('getsockname', c().getsockname(this.fd, address, Uint32Array.of(address.length)), subject)
      this.port = address.readUInt16BE(2)
    } catch (error) {
      closeSync(this.fd)
      throw error
    }
    const slots = ptr(this.#slots)
    for (let index = 0; index < batch; index++) {
      this.#received.vectors[index * 2] = BigInt(slots + index * slotSize)
      this.#received.vectors[index * 2 + 1] = BigInt(slotSize)
    }
  }

  /** Marks what is sent, for routing rules and packet filters; 0 for no mark. */
  setMark(mark: number): void {
    this.#set(SOL_SOCKET, SO_MARK, mark)
  }

  #set(level: number, option: number, value: number): void {
    check('setsockopt', c().setsockopt(this.fd, level, option, Int32Array.of(value), 4), String(option))
  }

  /** Hands over the datagrams that wait, a batch at most, each with its source as a socket address; both are reused by the next call. */
  receive(take: (datagram: Uint8Array, from: Uint8Array) => void): number {
    const { headers, addresses } = this.#received
    for (let index = 0; index < batch; index++) headers.writeUInt32LE(addressSize, index * headerSize + headerAt.nameLength)
    const count = attempt(() => check('recvmmsg', c().recvmmsg(this.fd, headers, batch, 0, null)))
    for (let index = 0; index < count; index++) {
      const at = index * headerSize
      const length = headers.readUInt32LE(at + headerAt.length)
      const source = index * addressSize
      const from = addresses.subarray(source, source + headers.readUInt32LE(at + headerAt.nameLength))
      take(this.#slots.subarray(index * slotSize, index * slotSize + length), from)
    }
    return count
  }

  /** Queues a datagram; its bytes must not change before `flush`. */
  queue(buffer: Uint8Array, at: number, length: number, to: Uint8Array): void {
    const index = this.#kept.length
    const { headers, vectors, addresses } = this.#queued
    vectors[index * 2] = BigInt(ptr(buffer, at))
    vectors[index * 2 + 1] = BigInt(length)
    addresses.set(to, index * addressSize)
    headers.writeUInt32LE(to.length, index * headerSize + headerAt.nameLength)
    this.#kept.push(buffer)
    if (this.#kept.length === batch) this.flush()
  }

  /** Sends what is queued. What the network does not take is dropped, as IP allows. */
  flush(): void {
    const count = this.#kept.length
    if (count === 0) return
    const base = ptr(this.#queued.headers)
    for (let sent = 0; sent < count; ) {
      const more = attempt(() => check('sendmmsg', sendFrom(this.fd, base + sent * headerSize, count - sent)))
      sent += Math.max(1, more) // none: the first of the rest was refused, by a route, a full buffer or a firewall
    }
    this.#kept.length = 0
  }

  /** Closes it. */
  close(): void {
    closeSync(this.fd)
  }
}

const sendFrom = (fd: number, headers: number, count: number) => c().sendmmsg(fd, headers as never, count, 0)

/** Errors of the network concern one datagram or destination, not the socket. */
const ofTheNetwork = [
  'EAGAIN',
  'EINTR',
  'ENOBUFS',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ECONNREFUSED',
  'EPERM',
  'EMSGSIZE',
  'EACCES',
  'EINVAL',
  'EADDRNOTAVAIL',
] as const

function attempt(call: () => number): number {
  try {
    return call()
  } catch (error) {
    if (failedWith(error, ...ofTheNetwork)) return 0
    throw error
  }
}
