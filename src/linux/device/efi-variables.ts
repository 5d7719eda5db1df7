/** Firmware variables (Documentation/filesystems/efivarfs.rst): four bytes of attributes, then the value. */
import { closeSync, openSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { failedWith } from '../../wire/errno.ts'
import { ioctl } from '../ioctl.ts'
import { translated } from '../system-error.ts'

const folder = '/sys/firmware/efi/efivars'
/** FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_IMMUTABLE_FL of linux/fs.h. */
const request = { getFlags: 0x80086601, setFlags: 0x40086602 } as const
const immutable = 0x10
/** Non-volatile, with boot service and runtime access. */
const usualAttributes = 7

/** Names of all variables of a vendor. */
export function efiVariables(vendor: string): string[] {
  const names = translated('list', folder, () => readdirSync(folder))
  return names.filter((name) => name.endsWith(`-${vendor}`)).map((name) => name.slice(0, -vendor.length - 1))
}

/** The value of a variable; undefined when it does not exist. */
export function readEfiVariable(name: string, vendor: string): Uint8Array | undefined {
  const path = `${folder}/${name}-${vendor}`
  try {
    return translated('read', path, () => readFileSync(path)).subarray(4)
  } catch (error) {
    if (failedWith(error, 'ENOENT')) return undefined
    throw error
  }
}

/** Writes a whole variable, which the firmware does atomically. */
export function writeEfiVariable(name: string, vendor: string, value: Uint8Array): void {
  const path = `${folder}/${name}-${vendor}`
  const bytes = Buffer.alloc(4 + value.length)
  bytes.writeUInt32LE(usualAttributes, 0)
  bytes.set(value, 4)
  if (readEfiVariable(name, vendor)) makeMutable(path)
  translated('write', path, () => writeFileSync(path, bytes))
}

/** Removes a variable, if it exists. */
export function removeEfiVariable(name: string, vendor: string): void {
  const path = `${folder}/${name}-${vendor}`
  if (!readEfiVariable(name, vendor)) return
  makeMutable(path)
  translated('remove', path, () => unlinkSync(path))
}

/** The kernel marks variables immutable against accidental removal. */
function makeMutable(path: string): void {
  const fd = translated('open', path, () => openSync(path, 'r'))
  try {
    const flags = new Uint32Array(2) // the kernel reads and writes an int, although the request number encodes a long
    ioctl(fd, request.getFlags, flags, `FS_IOC_GETFLAGS "${path}"`)
    const [low = 0] = flags
    flags[0] = low & ~immutable
    ioctl(fd, request.setFlags, flags, `FS_IOC_SETFLAGS "${path}"`)
  } finally {
    closeSync(fd)
  }
}
