/** TUN and TAP links, whose other end is a program, such as a virtual machine or a tunnel (Documentation/networking/tuntap). */

import { closeSync, constants, existsSync, openSync } from 'node:fs'
import { ioctl, ioctlNumber } from '../ioctl.ts'
import { translated } from '../system-error.ts'

const device = '/dev/net/tun'
const TUNSETIFF = 0x400454ca
const TUNSETPERSIST = 0x400454cb
const IFF_TUN = 0x0001
const IFF_TAP = 0x0002
const IFF_NO_PI = 0x1000
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

/** Creates a TUN link that lasts as long as the returned descriptor, which reads and writes IP packets and does not block. Throws SystemError. */
export const openTun = (name: string): number => attach(name, IFF_TUN)

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
