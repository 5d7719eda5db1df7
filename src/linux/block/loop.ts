import { closeSync, constants, openSync } from 'node:fs'
import { failedWith } from '../../wire/errno.ts'
import { ioctl, ioctlNumber } from '../ioctl.ts'
import { SystemError, translated } from '../system-error.ts'

const LOOP_CONFIGURE = 0x4c0a
const LOOP_CTL_GET_FREE = 0x4c82
const flags = { readOnly: 1, autoclear: 4, partitionScan: 8, directIo: 16 }

/** A file attached to a loop device, until `release`; with autoclear it then lasts as long as it is mounted. */
export interface AttachedLoop {
  device: string
  number: number
  release(): void
}

function configuration(file: number, options: LoopOptions): Buffer {
  const config = Buffer.alloc(304) // struct loop_config
  config.writeUInt32LE(file, 0)
  config.writeUInt32LE(options.blockSize ?? 0, 4)
  const info = 8 // struct loop_info64
  config.writeBigUInt64LE(BigInt(options.offset ?? 0), info + 24)
  config.writeBigUInt64LE(BigInt(options.sizeLimit ?? 0), info + 32)
  const bits =
    (options.readOnly ? flags.readOnly : 0) |
    (options.autoclear ? flags.autoclear : 0) |
    (options.partitionScan ? flags.partitionScan : 0) |
    (options.directIo ? flags.directIo : 0)
  config.writeUInt32LE(bits, info + 52)
  return config
}

/** How a file is attached. */
export interface LoopOptions {
  readOnly?: boolean
  /** Detaches when the last user closes it. */
  autoclear?: boolean
  partitionScan?: boolean
  directIo?: boolean
  offset?: number
  sizeLimit?: number
  blockSize?: number
}

/** Attaches a file to a free loop device. */
export function attachLoop(path: string, options: LoopOptions = {}): AttachedLoop {
  const mode = options.readOnly ? constants.O_RDONLY : constants.O_RDWR
  const file = translated('open', path, () => openSync(path, mode))
  try {
    const control = translated('open', '/dev/loop-control', () => openSync('/dev/loop-control', 'r+'))
    try {
      for (let attempt = 0; attempt < 64; attempt++) {
        const number = ioctlNumber(control, LOOP_CTL_GET_FREE, 0, 'LOOP_CTL_GET_FREE')
        const device = `/dev/loop${number}`
        const fd = translated('open', device, () => openSync(device, mode))
        try {
          ioctl(fd, LOOP_CONFIGURE, configuration(file, options), `LOOP_CONFIGURE "${device}" with "${path}"`)
        } catch (error) {
          closeSync(fd)
          if (failedWith(error, 'EBUSY')) continue // another process was faster
          throw error
        }
        let held = true
        const release = () => {
          if (held) closeSync(fd)
          held = false
        }
        return { device, number, release }
      }
    } finally {
      closeSync(control)
    }
  } finally {
    closeSync(file)
  }
  throw new SystemError('attach loop device', 'EBUSY', JSON.stringify(path), 'every free device was taken by another process')
}
