/** Links whose other end is a program: what a virtual machine's network card is plugged into (Documentation/networking/tuntap). */

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

/** Makes a TAP link that stays until it is removed; one that is there is left as it is. Throws SystemError. */
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
