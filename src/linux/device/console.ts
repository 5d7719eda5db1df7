/** The machine's virtual consoles (ioctl_vt(2)). */
import { closeSync, constants, openSync } from 'node:fs'
import { ioctlNumber } from '../ioctl.ts'
import { translated } from '../system-error.ts'

const VT_ACTIVATE = 0x5606

/** Switches to a console. */
export function showScreen(number: number): void {
  const path = '/dev/tty0'
  const fd = translated('open', path, () => openSync(path, constants.O_RDWR | constants.O_NOCTTY))
  try {
    ioctlNumber(fd, VT_ACTIVATE, number, `show screen ${number}`)
  } finally {
    closeSync(fd)
  }
}
