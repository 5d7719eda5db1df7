/** The hardware watchdog, which resets the machine unless it is fed (watchdog-api in the kernel's documentation). */
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { ioctl } from '../ioctl.ts'
import { translated } from '../system-error.ts'

// linux/watchdog.h
const WDIOC_KEEPALIVE = 0x80045705
const WDIOC_SETTIMEOUT = 0xc0045706

/** A running watchdog. Without `feed` within its timeout the machine is reset. */
export interface Watchdog {
  /** Seconds until the reset, as the hardware rounded them. */
  readonly timeout: number
  feed(): void
  /** Disarms it where the driver allows that; with "nowayout" the machine is reset. */
  disarm(): void
}

/** Opens a watchdog, which arms it. */
export function openWatchdog(path: string, seconds: number): Watchdog {
  const fd = translated('open', path, () => openSync(path, constants.O_WRONLY))
  const disarm = () => {
    try {
      translated('write', path, () => writeSync(fd, 'V')) // the magic close: without it closing does not stop the hardware
    } finally {
      closeSync(fd)
    }
  }
  const value = Uint32Array.of(seconds)
  try {
    ioctl(fd, WDIOC_SETTIMEOUT, value, `set timeout of "${path}"`)
  } catch (error) {
    disarm()
    throw error
  }
  const nothing = new Uint32Array(1)
  const feed = () => {
    ioctl(fd, WDIOC_KEEPALIVE, nothing, `feed "${path}"`)
  }
  const [timeout = seconds] = value // as the driver has rounded it
  return { timeout, feed, disarm }
}
