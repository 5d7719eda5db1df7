/** TUN and TAP links, whose other end is a program, such as a virtual machine or a tunnel (Documentation/networking/tuntap). */
import { closeSync, constants, existsSync, openSync } from 'node:fs'
import { failedWith } from '../../wire/errno.ts'
import { virtioHeaderLength } from '../../wire/packet/virtio-header.ts'
import { ioctl, ioctlNumber } from '../ioctl.ts'
import { translated } from '../system-error.ts'

const device = '/dev/net/tun'
const TUNSETIFF = 0x400454ca
const TUNSETPERSIST = 0x400454cb
const SIOCGIFMTU = 0x8921
const IFF_TUN = 0x0001
const IFF_TAP = 0x0002
const IFF_NO_PI = 0x1000
const IFF_VNET_HDR = 0x4000
const TUNSETOFFLOAD = 0x400454d0
const TUNSETVNETHDRSZ = 0x400454d8
const TUN_F_CSUM = 0x01
const TUN_F_TSO4 = 0x02
const TUN_F_TSO6 = 0x04
const nameLength = 16 // IFNAMSIZ
const requestLength = 40 // struct ifreq

/** Whether TUN and TAP links can be made. */
export const hasTun = (): boolean => existsSync(device)

/** Creates a TAP link that persists until it is removed; an existing one is not changed. Throws SystemError. */
export function createTap(name: string): void {
  const fd = attach(name, IFF_TAP)
  try {
    ioctlNumber(fd, TUNSETPERSIST, 1, `TUNSETPERSIST ${name}`)
  } finally {
    closeSync(fd)
  }
}

/** A TUN link that lasts as long as the descriptor, which reads and writes IP packets and does not block. */
export interface Tun {
  readonly fd: number
  /** Whether each packet has a struct virtio_net_hdr of 10 bytes before it, so that TCP packets may be large and checksums partial. */
  readonly segments: boolean
}

/** Creates a TUN link, for large segments if the kernel has them. Throws SystemError. */
export function openTun(name: string): Tun {
  const fd = openSegmentTun(name)
  return fd === undefined ? { fd: attach(name, IFF_TUN), segments: false } : { fd, segments: true }
}

function openSegmentTun(name: string): number | undefined {
  let fd: number | undefined
  try {
    fd = attach(name, IFF_TUN | IFF_VNET_HDR)
    ioctl(fd, TUNSETVNETHDRSZ, Uint32Array.of(virtioHeaderLength), `TUNSETVNETHDRSZ ${name}`)
    ioctlNumber(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6, `TUNSETOFFLOAD ${name}`)
    return fd
  } catch (error) {
    if (fd !== undefined) closeSync(fd)
    if (failedWith(error, 'EINVAL', 'ENOTTY', 'EOPNOTSUPP')) return undefined
    throw error
  }
}

/** The MTU of a link in bytes; `socket` is any socket of its network namespace (netdevice(7)). Throws SystemError. */
export function linkMtu(socket: number, name: string): number {
  const request = Buffer.alloc(requestLength)
  request.write(name, 'latin1')
  ioctl(socket, SIOCGIFMTU, request, `SIOCGIFMTU ${name}`)
  return request.readInt32LE(nameLength)
}

function attach(name: string, kind: number): number {
  if (Buffer.byteLength(name) >= nameLength) throw new RangeError(`"${name}" is too long for a link`)
  const fd = translated('open', device, () => openSync(device, constants.O_RDWR | constants.O_NONBLOCK))
  try {
    const request = Buffer.alloc(requestLength)
    request.write(name, 'latin1')
    request.writeUInt16LE(kind | IFF_NO_PI, nameLength)
    ioctl(fd, TUNSETIFF, request, `TUNSETIFF ${name}`)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}
