/** Captures the packets of a link in both directions, with their link headers (packet(7)). */

import { closeSync } from 'node:fs'
import { failedWith } from '../../wire/errno.ts'
import { check, libc } from '../libc.ts'
import { onReadable } from '../readable.ts'
import { inNetns } from './netns.ts'
import { attach } from './packet.ts'
import { MSG_TRUNC, SO_RCVBUF, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_RAW, SOL_SOCKET } from './socket-constants.ts'

const c = libc({
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
  recvfrom: { args: ['i32', 'ptr', 'u64', 'i32', 'ptr', 'ptr'], returns: 'i64' },
})

const AF_PACKET = 17
const SOL_PACKET = 263
const PACKET_ADD_MEMBERSHIP = 1
const PACKET_MR_PROMISC = 1
const ETH_P_ALL = 0x0003
const addressLength = 20 // struct sockaddr_ll
const kernelBuffer = 4 << 20
const maxPacket = 65536
const maxBurst = 512

/** Options of a capture. */
export interface CaptureOptions {
  /** Promiscuous mode: also packets for other stations. */
  promiscuous?: boolean
  /** A classic packet filter. */
  filter?: readonly number[][]
  /** Maximum bytes of each packet. */
  snapLength?: number
  netns?: string
}

/** An open capture. */
export interface Capture {
  /** Pauses: the kernel queues packets and drops what exceeds its buffer. */
  pause(): void
  resume(): void
  close(): void
}

/** Captures a link's packets; `receive` gets each with its full length. Throws SystemError. */
export function openCapture(
  { index, name }: { index: number; name: string },
  receive: (packet: Uint8Array, length: number) => void,
  options: CaptureOptions = {},
): Capture {
  return options.netns ? inNetns(options.netns, () => open(index, name, receive, options)) : open(index, name, receive, options)
}

function open(
  index: number,
  name: string,
  receive: (packet: Uint8Array, length: number) => void,
  { promiscuous = false, filter, snapLength = maxPacket }: CaptureOptions,
): Capture {
  let fd: number | undefined
  let paused = false
  let deaf = () => {}
  const close = () => {
    deaf()
    if (fd !== undefined) closeSync(fd)
    fd = undefined
  }
  const buffer = Buffer.alloc(Math.min(maxPacket, Math.max(1, snapLength)))
  const drain = () => {
    for (let count = 0; fd !== undefined && !paused; count++) {
      if (count === maxBurst) {
        setImmediate(drain) // others want the thread too
        return
      }
      const length = receiveOne(fd, buffer)
      if (length === undefined) return
      receive(Uint8Array.prototype.slice.call(buffer, 0, Math.min(length, buffer.length)), length)
    }
  }
  try {
    // Bound to no protocol at first, so that no packet arrives before the filter is attached.
    fd = check('socket', c().socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), 'packet')
    if (filter && filter.length > 0) attach(fd, filter)
    check('setsockopt', c().setsockopt(fd, SOL_SOCKET, SO_RCVBUF, Buffer.from(Int32Array.of(kernelBuffer).buffer), 4), 'SO_RCVBUF')
    if (promiscuous) {
      const membership = Buffer.alloc(16) // struct packet_mreq
      membership.writeInt32LE(index, 0)
      membership.writeUInt16LE(PACKET_MR_PROMISC, 4)
      check('setsockopt', c().setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership, membership.length), 'PACKET_ADD_MEMBERSHIP')
    }
    deaf = onReadable(fd, drain)
    const address = Buffer.alloc(addressLength)
    address.writeUInt16LE(AF_PACKET, 0)
    address.writeUInt16BE(ETH_P_ALL, 2)
    address.writeInt32LE(index, 4)
    check('bind', c().bind(fd, address, address.length), name)
  } catch (error) {
    close()
    throw error
  }
  drain()
  return {
    pause() {
      paused = true
    },
    resume() {
      if (!paused) return
      paused = false
      drain()
    },
    close,
  }
}

function receiveOne(fd: number, buffer: Buffer): number | undefined {
  try {
    return check('recvfrom', c().recvfrom(fd, buffer, buffer.length, MSG_TRUNC, null, null))
  } catch (error) {
    if (failedWith(error, 'EAGAIN', 'EINTR', 'ENETDOWN')) return undefined
    throw error
  }
}
