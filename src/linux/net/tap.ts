/** TAP links, whose other end is a program: the network interface of a virtual machine (Documentation/networking/tuntap). */

import { closeSync, openSync } from 'node:fs'
import { ioctl, ioctlNumber } from '../ioctl.ts'
import { translated } from '../system-error.ts'

const device = '/dev/net/tun'
const TUNSETIFF = 0x400454ca
const TUNSETPERSIST = 0x400454cb
const IFF_TAP = 0x0002
const IFF_NO_PI = 0x1000
const nameLength = 16 // IFNAMSIZ
const requestLength = 40 // struct ifreq

/** Creates a TAP link that persists until it is removed; an existing one is not changed. Throws SystemError. */
export function createTap(name: string): void {
  if (Buffer.byteLength(name) >= nameLength) throw new RangeError(`"${name}" is too long for a link`)
  const fd = translated('open', device, () => openSync(device, 'r+'))
  try {
    const request = Buffer.alloc(requestLength)
    request.write(name, 'latin1')
    request.writeUInt16LE(IFF_TAP | IFF_NO_PI, nameLength)
    ioctl(fd, TUNSETIFF, request, `TUNSETIFF ${name}`)
    ioctlNumber(fd, TUNSETPERSIST, 1, `TUNSETPERSIST ${name}`)
  } finally {
    closeSync(fd)
  }
}
