/**
 * UDP sockets that send and receive many datagrams a call (udp(7), recvmmsg(2), sendmmsg(2)). Datagrams of one length to one destination
 * that follow one another in memory are one message, which the kernel or the network device splits (UDP_SEGMENT); received ones of one
 * length and source arrive as one message (UDP_GRO). A kernel without these options gets and gives single datagrams.
 */
import { type Pointer, ptr } from 'bun:ffi'
import { closeSync } from 'node:fs'
import { errnoName, failedWith } from '../../wire/errno.ts'
import { check, errno, libc } from '../libc.ts'
import { SystemError } from '../system-error.ts'
import { addressSize, batchLength, MessageBatch, SOL_UDP } from './message-batch.ts'
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
const addressLengths = { inet: 16, inet6: addressSize } as const
const SO_SNDBUF = 7
const SO_SNDBUFFORCE = 32
const SO_RCVBUFFORCE = 33
const SO_MARK = 36
const IPPROTO_IPV6 = 41
const IPV6_V6ONLY = 26
const UDP_SEGMENT = 103
const UDP_GRO = 104
/** Datagrams of a message (UDP_MAX_SEGMENTS of kernels before 6.9), and its bytes: a length of 16 bits, less the headers of IPv4 and UDP. */
const maxSegments = 64
const maxMessage = 65_507
/** Bytes of the socket's buffers. The limits of net.core.rmem_max and wmem_max would hold a few messages of this length. */
const bufferSize = 7 << 20
const slotSize = 65_536

/** What the queue's last message consists of, which the next datagram may extend. */
interface Message {
  readonly to: Uint8Array
  readonly segment: number
  count: number
  /** Where it starts and ends in memory. */
  readonly start: number
  end: number
}

/** A UDP socket of one address family on all addresses. */
export class DatagramPort {
  readonly fd: number
  /** The port it is bound to. */
  readonly port: number
  readonly #received = new MessageBatch()
  readonly #slots = new Uint8Array(batchLength * slotSize)
  readonly #sources: readonly Uint8Array[]
  readonly #queued = new MessageBatch()
  #single: MessageBatch | undefined
  /** Whether the kernel splits messages. */
  #segments: boolean
  #count = 0
  #last: Message | undefined
  /** Buffers of queued datagrams, which must stay reachable; the address of the last one. */
  readonly #kept: Uint8Array[] = []
  #keptAddress = 0

  /** Binds a port, 0 for any free one. Throws SystemError, such as EADDRINUSE. */
  constructor(family: keyof typeof families, port: number) {
    const subject = `UDP port ${port}`
    this.fd = check('socket', c().socket(families[family], SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), subject)
    try {
      if (family === 'inet6') this.#set(IPPROTO_IPV6, IPV6_V6ONLY, 1)
      if (!this.#supports(SOL_SOCKET, SO_RCVBUFFORCE, bufferSize)) this.#set(SOL_SOCKET, SO_RCVBUF, bufferSize)
      if (!this.#supports(SOL_SOCKET, SO_SNDBUFFORCE, bufferSize)) this.#set(SOL_SOCKET, SO_SNDBUF, bufferSize)
      this.#segments = this.#supports(SOL_UDP, UDP_SEGMENT, 0)
      this.#supports(SOL_UDP, UDP_GRO, 1)
      const address = Buffer.alloc(addressLengths[family])
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
    for (let index = 0; index < batchLength; index++) {
      this.#received.setVector(index, slots + index * slotSize, slotSize)
      this.#received.expect(index)
    }
    this.#sources = Array.from({ length: batchLength }, (_, index) => this.#received.address(index, addressLengths[family]))
  }

  /** Marks what is sent, for routing rules and packet filters; 0 for no mark. */
  setMark(mark: number): void {
    this.#set(SOL_SOCKET, SO_MARK, mark)
  }

  #set(level: number, option: number, value: number): void {
    check('setsockopt', c().setsockopt(this.fd, level, option, Int32Array.of(value), 4), String(option))
  }

  #supports(level: number, option: number, value: number): boolean {
    try {
      this.#set(level, option, value)
      return true
    } catch (error) {
      if (failedWith(error, 'ENOPROTOOPT', 'EPERM', 'EINVAL', 'EOPNOTSUPP')) return false
      throw error
    }
  }

  /** Hands over the datagrams that wait, each with its source as a socket address; both are reused by the next call. Returns their number. */
  receive(take: (datagram: Uint8Array, from: Uint8Array) => void): number {
    const count = unlessRefused('recvmmsg', c().recvmmsg(this.fd, this.#received.header(0), batchLength, 0, null))
    let datagrams = 0
    for (let index = 0; index < count; index++) {
      const from = this.#sources[index] ?? new Uint8Array()
      const start = index * slotSize
      const end = start + this.#received.received(index)
      const segment = this.#received.control(index, UDP_GRO) || slotSize
      for (let at = start; at < end; at += segment, datagrams++) take(this.#slots.subarray(at, Math.min(at + segment, end)), from)
      this.#received.expect(index)
    }
    return datagrams
  }

  /** Queues a datagram; its bytes must not change before `flush`. */
  queue(buffer: Uint8Array, at: number, length: number, to: Uint8Array): void {
    if (buffer !== this.#kept.at(-1)) {
      this.#kept.push(buffer)
      this.#keptAddress = ptr(buffer)
    }
    const start = this.#keptAddress + at
    const last = this.#last
    if (last && this.#extends(last, start, length, to)) {
      last.count++
      last.end = start + length
      if (last.count === 2) this.#queued.setControl(this.#count - 1, UDP_SEGMENT, last.segment)
      this.#queued.setVector(this.#count - 1, last.start, last.end - last.start)
      return
    }
    if (this.#count === batchLength) {
      this.flush()
      this.queue(buffer, at, length, to)
      return
    }
    this.#queued.addressTo(this.#count, to)
    this.#queued.setVector(this.#count, start, length)
    this.#last = { to, segment: length, count: 1, start, end: start + length }
    this.#count++
  }

  /** Whether a datagram may be added to a message: all but the last have one length. */
  #extends(last: Message, start: number, length: number, to: Uint8Array): boolean {
    return (
      this.#segments &&
      start === last.end &&
      to === last.to &&
      length <= last.segment &&
      length > 0 &&
      last.count < maxSegments &&
      last.end - last.start === last.count * last.segment &&
      start + length - last.start <= maxMessage
    )
  }

  /** Sends what is queued. What the network does not take is dropped, as IP allows. */
  flush(): void {
    if (this.#count === 0) return
    this.#send(this.#queued, this.#count)
    this.#count = 0
    this.#last = undefined
    this.#kept.length = 0
  }

  #send(batch: MessageBatch, count: number): void {
    for (let sent = 0; sent < count; ) {
      const result = sendFrom(this.fd, batch.header(sent), count - sent)
      if (result > 0) {
        sent += result
        continue
      }
      // The first of the rest was refused, by a route, a full buffer or a firewall.
      const reason = errno()
      const segment = batch.control(sent, UDP_SEGMENT)
      if (segment > 0 && refusesSegments.has(errnoName(reason))) this.#sendSingly(batch, sent, segment, reason)
      else if (!ofTheNetwork.has(errnoName(reason))) throw new SystemError('sendmmsg', reason)
      sent++
    }
  }

  /** Sends the datagrams of a message one by one. */
  #sendSingly(batch: MessageBatch, index: number, segment: number, reason: number): void {
    if (errnoName(reason) === 'EIO') this.#segments = false // the network device computes no checksums
    const { address, length } = batch.vector(index)
    const to = batch.address(index, batch.addressLength(index))
    this.#single ??= new MessageBatch()
    const single = this.#single
    let count = 0
    for (let at = 0; at < length; at += segment, count++) {
      single.addressTo(count, to)
      single.setVector(count, address + at, Math.min(segment, length - at))
    }
    this.#send(single, count)
  }

  /** Closes it. */
  close(): void {
    closeSync(this.fd)
  }
}

const sendFrom = (fd: number, headers: Pointer, count: number) => c().sendmmsg(fd, headers, count, 0)

/** Errors of a message whose datagrams the kernel may still take one by one: of the device (EIO), and of datagrams above the path's MTU. */
const refusesSegments = new Set(['EIO', 'EINVAL', 'EMSGSIZE'])

/** Errors of the network concern one datagram or destination, not the socket. */
const ofTheNetwork = new Set([
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
])

/** The result of a call; 0 for an error of the network. No error is made for these, which are as frequent as packets. */
function unlessRefused(call: string, result: number): number {
  if (result >= 0) return result
  const reason = errno()
  if (ofTheNetwork.has(errnoName(reason))) return 0
  throw new SystemError(call, reason)
}
