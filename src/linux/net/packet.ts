/** Raw packets of one link (packet(7)): DHCP needs them before there is an address, and so does ARP. */

import { closeSync } from 'node:fs'
import { failedWith } from '../../wire/errno.ts'
import { formatMac, parseMac } from '../../wire/ip.ts'
import { arpAnnouncement, neighbourAdvertisement } from '../../wire/packet/arp.ts'
import { isIPv6 } from '../../wire/prefix.ts'
import { filterProgram } from '../filter-program.ts'
import { check, cString, libc } from '../libc.ts'
import { onReadable } from '../readable.ts'
import { inNetns } from './netns.ts'
import { SOCK_CLOEXEC, SOCK_DGRAM, SOCK_NONBLOCK, SOL_SOCKET } from './socket-constants.ts'

const c = libc({
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
  sendto: { args: ['i32', 'ptr', 'u64', 'i32', 'ptr', 'u32'], returns: 'i64' },
  recvfrom: { args: ['i32', 'ptr', 'u64', 'i32', 'ptr', 'ptr'], returns: 'i64' },
})

const AF = { ip4: 2, ip6: 10, packet: 17 } as const
const SO = { reuseAddress: 2, bindToDevice: 25, attachFilter: 26 } as const
const IPPROTO_IPV6 = 41
const IPV6_V6ONLY = 26
const ETH_P = { ip4: 0x0800, ip6: 0x86dd, arp: 0x0806 } as const
const PACKET_OUTGOING = 4
const addressLength = 20 // struct sockaddr_ll
const maxPacket = 65536
const maxBurst = 256

/** The broadcast address. */
export const broadcast = 'ff:ff:ff:ff:ff:ff'

/** What a packet socket needs to know of its link. */
export interface PacketLink {
  index: number
  name: string
  hardwareAddress: string
}

/** An open packet socket of a link. */
export interface PacketSocket {
  /** Sends a packet to a station; the kernel adds the link header. Throws SystemError. */
  send(packet: Uint8Array, to: string): void
  close(): void
}

/** A classic packet filter that passes only UDP to a port; offsets are from the IP header. */
function portFilter(family: 'ip4' | 'ip6', port: number): number[][] {
  const [load8, load16, load16x, loadHeader, equal, anySet, give] = [0x30, 0x28, 0x48, 0xb1, 0x15, 0x45, 0x06]
  if (family === 'ip6')
    return [
      [load8, 0, 0, 6],
      [equal, 0, 3, 17],
      [load16, 0, 0, 42],
      [equal, 0, 1, port],
      [give, 0, 0, maxPacket],
      [give, 0, 0, 0],
    ]
  return [
    [load8, 0, 0, 9],
    [equal, 0, 6, 17],
    [load16, 0, 0, 6],
    [anySet, 4, 0, 0x1fff],
    [loadHeader, 0, 0, 0],
    [load16x, 0, 0, 2],
    [equal, 0, 1, port],
    [give, 0, 0, maxPacket],
    [give, 0, 0, 0],
  ]
}

const nothingPasses = [[0x06, 0, 0, 0]]

/** Attaches a classic packet filter (SO_ATTACH_FILTER): operation, jump when true, jump when false, value. Throws SystemError. */
export function attach(fd: number, program: readonly number[][]): void {
  const filter = filterProgram(program)
  check('setsockopt', c().setsockopt(fd, SOL_SOCKET, SO.attachFilter, filter, 16), 'SO_ATTACH_FILTER')
}

function linkAddress(protocol: number, index: number, mac?: Uint8Array): Buffer {
  const bytes = Buffer.alloc(addressLength)
  bytes.writeUInt16LE(AF.packet, 0)
  bytes.writeUInt16BE(protocol, 2)
  bytes.writeInt32LE(index, 4)
  if (mac) {
    bytes.writeUInt8(mac.length, 11)
    bytes.set(mac, 12)
  }
  return bytes
}

/** A UDP socket that receives nothing: while it exists the kernel sends no "port unreachable" for the port. */
function holdPort(family: 'ip4' | 'ip6', port: number, link: string): number {
  const fd = check('socket', c().socket(AF[family], SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), 'udp')
  try {
    const one = Buffer.from(Int32Array.of(1).buffer)
    attach(fd, nothingPasses)
    check('setsockopt', c().setsockopt(fd, SOL_SOCKET, SO.reuseAddress, one, 4), 'SO_REUSEADDR')
    if (family === 'ip6') check('setsockopt', c().setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, one, 4), 'IPV6_V6ONLY')
    const name = cString(link)
    check('setsockopt', c().setsockopt(fd, SOL_SOCKET, SO.bindToDevice, name, name.length), 'SO_BINDTODEVICE')
    const address = Buffer.alloc(family === 'ip4' ? 16 : 28)
    address.writeUInt16LE(AF[family], 0)
    address.writeUInt16BE(port, 2)
    check('bind', c().bind(fd, address, address.length), `udp port ${port}`)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** Opens a packet socket for a protocol; for IP only UDP to a port. `receive` gets each packet with its sender. Throws SystemError. */
export function openPacket(
  link: PacketLink,
  what: 'arp' | { family: 'ip4' | 'ip6'; port: number },
  receive: (packet: Uint8Array, from: string) => void,
  { netns = '' } = {},
): PacketSocket {
  return netns ? inNetns(netns, () => open(link, what, receive)) : open(link, what, receive)
}

function open(
  { index, name }: PacketLink,
  what: 'arp' | { family: 'ip4' | 'ip6'; port: number },
  receive: (packet: Uint8Array, from: string) => void,
): PacketSocket {
  const protocol = ETH_P[what === 'arp' ? 'arp' : what.family]
  let held = what === 'arp' ? undefined : holdPort(what.family, what.port, name)
  let fd: number | undefined
  let deaf = () => {}
  const close = () => {
    deaf()
    if (fd !== undefined) closeSync(fd)
    if (held !== undefined) closeSync(held)
    fd = held = undefined
  }
  const buffer = Buffer.alloc(maxPacket)
  const from = Buffer.alloc(addressLength)
  const drain = () => {
    for (let count = 0; fd !== undefined; count++) {
      if (count === maxBurst) {
        setImmediate(drain) // others want the thread too
        return
      }
      const length = receiveOne(fd, buffer, from)
      if (length === undefined) return
      if (from.readUInt8(10) === PACKET_OUTGOING) continue
      receive(Uint8Array.prototype.slice.call(buffer, 0, length), formatMac(from.subarray(12, 12 + Math.min(8, from.readUInt8(11)))))
    }
  }
  try {
    // Bound to no protocol at first, so that no packet arrives before the filter is attached.
    fd = check('socket', c().socket(AF.packet, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), 'packet')
    if (what !== 'arp') attach(fd, portFilter(what.family, what.port))
    deaf = onReadable(fd, drain)
    check('bind', c().bind(fd, linkAddress(protocol, index), addressLength), name)
  } catch (error) {
    close()
    throw error
  }
  drain()
  return {
    send(packet, to) {
      if (fd === undefined) return
      const mac = parseMac(to)
      if (!mac) throw new RangeError(`"${to}" is no hardware address`)
      check('sendto', c().sendto(fd, packet, packet.length, 0, linkAddress(protocol, index, mac), addressLength), name)
    },
    close,
  }
}

function receiveOne(fd: number, buffer: Buffer, from: Buffer): number | undefined {
  try {
    return check('recvfrom', c().recvfrom(fd, buffer, buffer.length, 0, from, Uint32Array.of(addressLength)))
  } catch (error) {
    if (failedWith(error, 'EAGAIN', 'EINTR', 'ENETDOWN')) return undefined
    throw error
  }
}

/** Announces an address to all stations of a link (gratuitous ARP, or an unsolicited neighbour advertisement). */
export function announce(link: PacketLink, address: string, options: { netns?: string } = {}): void {
  const six = isIPv6(address)
  const packet = six ? neighbourAdvertisement(link.hardwareAddress, address) : arpAnnouncement(link.hardwareAddress, address)
  const send = () => {
    const protocol = six ? ETH_P.ip6 : ETH_P.arp
    const fd = check('socket', c().socket(AF.packet, SOCK_DGRAM | SOCK_CLOEXEC, 0), 'packet')
    try {
      const to = linkAddress(protocol, link.index, parseMac(six ? '33:33:00:00:00:01' : broadcast))
      check('sendto', c().sendto(fd, packet, packet.length, 0, to, addressLength), link.name)
    } finally {
      closeSync(fd)
    }
  }
  if (options.netns) inNetns(options.netns, send)
  else send()
}
