/**
 * Netlink: requests are synchronous (the kernel has answered when send returns), multicast messages are a stream on the event
 * loop. A socket stays in the network namespace it was opened in.
 */

import { closeSync } from 'node:fs'
import { constants } from 'node:os'
import { DecodeError } from '../../wire/decode-error.ts'
import { failedWith } from '../../wire/errno.ts'
import {
  type Acknowledgement,
  control,
  flag,
  type NetlinkMessage,
  readAcknowledgement,
  readMessages,
  writeMessage,
} from '../../wire/netlink/message.ts'
import { check, libc } from '../libc.ts'
import { SystemError } from '../system-error.ts'
import { inNetns } from './netns.ts'
import { MSG_DONTWAIT, MSG_TRUNC, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_RAW, SOL_SOCKET } from './socket-constants.ts'

const c = libc({
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
  send: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
  recv: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
})

const AF_NETLINK = 16
const SOL_NETLINK = 270
const option = {
  sendTimeout: 21,
  receiveTimeout: 20,
  receiveBuffer: 8,
  membership: 1,
  capAck: 10,
  extendedAck: 11,
  strictCheck: 12,
} as const

/** The netlink protocols used here. */
export const netlinkProtocol = { route: 0, audit: 9, netfilter: 12, uevent: 15, generic: 16 } as const

/** A refused request: the failed call with the kernel's extended error message. */
class NetlinkError extends SystemError {
  /** The kernel's message, '' when there is none. */
  readonly reason: string

  constructor(call: string, { errno, message = '', offset }: Acknowledgement, subject: string) {
    super(call, errno, subject, message && offset !== undefined ? `${message}, at byte ${offset}` : message)
    this.reason = message
  }
}

function setOption(fd: number, level: number, name: number, value: Uint8Array | number): void {
  const bytes = typeof value === 'number' ? Buffer.from(Int32Array.of(value).buffer) : value
  check('setsockopt', c().setsockopt(fd, level, name, bytes, bytes.length), String(name))
}

/** Opens and binds a netlink socket; the caller closes the descriptor. */
export function openNetlink(protocol: number, { netns = '', groups = [] as readonly number[], nonBlocking = false } = {}): number {
  const type = SOCK_RAW | SOCK_CLOEXEC | (nonBlocking ? SOCK_NONBLOCK : 0)
  const make = () => check('socket', c().socket(AF_NETLINK, type, protocol), 'netlink')
  const fd = netns ? inNetns(netns, make) : make()
  try {
    const address = Buffer.alloc(12) // struct sockaddr_nl
    address.writeUInt16LE(AF_NETLINK, 0)
    check('bind', c().bind(fd, address, address.length), 'netlink')
    for (const group of groups) setOption(fd, SOL_NETLINK, option.membership, group)
  } catch (error) {
    closeSync(fd)
    throw error
  }
  return fd
}

/** A socket for requests. */
export class NetlinkSocket implements Disposable {
  readonly #fd: number
  #sequence = 0
  #buffer = Buffer.alloc(64 << 10)

  constructor(protocol: number = netlinkProtocol.route, { netns = '', timeoutMs = 10_000 } = {}) {
    this.#fd = openNetlink(protocol, { netns })
    try {
      const timeout = Buffer.alloc(16) // struct timeval
      timeout.writeBigInt64LE(BigInt(Math.floor(timeoutMs / 1000)), 0)
      timeout.writeBigInt64LE(BigInt((timeoutMs % 1000) * 1000), 8)
      setOption(this.#fd, SOL_SOCKET, option.receiveTimeout, timeout)
      setOption(this.#fd, SOL_SOCKET, option.sendTimeout, timeout)
      setOption(this.#fd, SOL_SOCKET, option.receiveBuffer, 4 << 20)
      setOption(this.#fd, SOL_NETLINK, option.extendedAck, 1)
      setOption(this.#fd, SOL_NETLINK, option.capAck, 1)
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Enables filtering of dumps by the fields of the request (NETLINK_GET_STRICT_CHK). */
  strict(): this {
    setOption(this.#fd, SOL_NETLINK, option.strictCheck, 1)
    return this
  }

  /** Sends a request and waits for its acknowledgement; returns the messages received before that. */
  request(call: string, subject: string, type: number, body: Uint8Array, flags = 0): NetlinkMessage[] {
    return this.#exchange(call, subject, type, body, flag.request | flag.ack | flags).messages
  }

  /** Sends a request that is answered by one message and by no acknowledgement. */
  query(call: string, subject: string, type: number, body: Uint8Array): NetlinkMessage {
    const sequence = this.#send(call, subject, { type, flags: flag.request, body })
    for (;;) {
      for (const message of readMessages(this.#receive(call, subject))) {
        if (message.sequence !== sequence) continue
        if (message.type === control.error) throw new NetlinkError(call, readAcknowledgement(message), subject)
        return message
      }
    }
  }

  /** Dumps a whole table; restarts when the table changed meanwhile. */
  dump(call: string, type: number, body: Uint8Array, subject = ''): NetlinkMessage[] {
    for (let attempt = 0; ; attempt++) {
      try {
        const { messages, interrupted } = this.#exchange(call, subject, type, body, flag.request | flag.dump)
        if (!interrupted || attempt === 10) return messages // a table that never rests: the last look is as good as any
      } catch (error) {
        if (!failedWith(error, 'ENOBUFS') || attempt === 10) throw error
        this.#drain()
      }
    }
  }

  /** Returns the number of the request. */
  #send(call: string, subject: string, request: Pick<NetlinkMessage, 'type' | 'flags' | 'body'>): number {
    this.#sequence = (this.#sequence + 1) >>> 0
    const bytes = writeMessage({ ...request, sequence: this.#sequence })
    check(call, c().send(this.#fd, bytes, bytes.length, 0), subject)
    return this.#sequence
  }

  #exchange(call: string, subject: string, type: number, body: Uint8Array, flags: number) {
    const sequence = this.#send(call, subject, { type, flags, body })
    const messages: NetlinkMessage[] = []
    let interrupted = false
    for (;;) {
      for (const message of readMessages(this.#receive(call, subject))) {
        if (message.sequence !== sequence) continue // the late answer to a request that timed out
        if (message.flags & flag.dumpInterrupted) interrupted = true
        if (message.type === control.overrun) throw new SystemError(call, 'ENOBUFS', subject)
        if (message.type === control.noop) continue
        if (message.type !== control.error && message.type !== control.done) {
          messages.push(message)
          continue
        }
        const answer = readAcknowledgement(message)
        if (answer.errno === 0) return { messages, interrupted }
        if (answer.errno === constants.errno.EINTR && message.type === control.done) return { messages, interrupted: true }
        throw new NetlinkError(call, answer, subject)
      }
    }
  }

  // A copy of one datagram; the buffer grows to the size of the datagram.
  #receive(call: string, subject: string): Uint8Array {
    const MSG_PEEK = 2
    const size = check(call, c().recv(this.#fd, this.#buffer, this.#buffer.length, MSG_PEEK | MSG_TRUNC), subject)
    if (size > 16 << 20) throw new SystemError(call, 'EMSGSIZE', subject, `an answer of ${size} bytes`)
    if (size > this.#buffer.length) this.#buffer = Buffer.alloc(size)
    const count = check(call, c().recv(this.#fd, this.#buffer, this.#buffer.length, 0), subject)
    return Uint8Array.prototype.slice.call(this.#buffer, 0, count)
  }

  #drain(): void {
    for (let left = 4096; left > 0; left--) if (c().recv(this.#fd, this.#buffer, this.#buffer.length, MSG_DONTWAIT) < 0) return
  }

  close(): void {
    closeSync(this.#fd)
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

/** An event of a subscription: messages, or that some were lost and everything must be read again. */
export type NetlinkEvent = { lost: false; messages: NetlinkMessage[] } | { lost: true }

/** Follows multicast groups until the signal is aborted. */
export async function* watchNetlink(
  protocol: number,
  groups: readonly number[],
  options: { netns?: string; signal?: AbortSignal | undefined } = {},
): AsyncGenerator<NetlinkEvent> {
  for await (const bytes of watchGroups(protocol, groups, options)) {
    if (!bytes) {
      yield { lost: true }
      continue
    }
    try {
      yield { lost: false, messages: readMessages(bytes) }
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error // a datagram may have been cut where the reader's buffer ended
      yield { lost: true }
    }
  }
}

/** Datagrams of multicast groups until the signal is aborted, one or several at a time; undefined where some may have been lost. */
export async function* watchGroups(
  protocol: number,
  groups: readonly number[],
  { netns = '', signal }: { netns?: string; signal?: AbortSignal | undefined } = {},
): AsyncGenerator<Uint8Array | undefined> {
  const fd = openNetlink(protocol, { netns, groups, nonBlocking: true })
  try {
    setOption(fd, SOL_SOCKET, option.receiveBuffer, 1 << 20)
    yield undefined // nothing is known from before
    while (!signal?.aborted) {
      const reader = Bun.file(fd).stream().getReader()
      const stop = () => {
        reader.cancel().catch(() => {}) // ends the loop; a second failure adds nothing
      }
      signal?.addEventListener('abort', stop, { once: true })
      try {
        for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) yield chunk.value
        if (signal?.aborted) return
        throw new SystemError('read', 'EIO', 'netlink', 'the stream ended')
      } catch (error) {
        if (signal?.aborted) return
        if (!failedWith(error, 'ENOBUFS')) throw error
        yield undefined
      } finally {
        signal?.removeEventListener('abort', stop)
        reader.releaseLock()
      }
    }
  } finally {
    closeSync(fd)
  }
}
