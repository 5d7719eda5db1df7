/** Block devices: size, random access, and the kernel's view of their partitions. */
import { ptr } from 'bun:ffi'
import { closeSync, constants, existsSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { endianness } from 'node:os'
import { basename } from 'node:path'
import { pause } from '../../timing/pause.ts'
import { codeOf, failedWith } from '../../wire/errno.ts'
import { ioctl, ioctlNumber } from '../ioctl.ts'
import { check, cString, libc, quoted } from '../libc.ts'
import { SystemError, toSystemError, translated } from '../system-error.ts'

/** Requests of linux/fs.h and linux/blkpg.h. */
const request = {
  rereadPartitions: 0x125f,
  sectorSize: 0x1268,
  partition: 0x1269,
  discard: 0x1277,
  zeroOut: 0x127f,
  size: 0x80081272,
} as const

/** An open device, or a regular file in its place. Offsets and lengths are in bytes. */
export interface OpenDevice {
  readonly path: string
  readonly size: number
  readonly sectorSize: number
  /** Reads exactly `length` bytes; SystemError where the device ends before. */
  read(offset: number, length: number): Promise<Uint8Array>
  write(offset: number, bytes: Uint8Array): Promise<void>
  /** Flushes everything written to the medium. */
  flush(): Promise<void>
  close(): Promise<void>
}

/** How a device is opened. */
export interface OpenDeviceOptions {
  write?: boolean
  /** Refused (EBUSY) while it is mounted or otherwise held. */
  exclusive?: boolean
  /** For a regular file in place of a device. */
  sectorSize?: number
  /** Milliseconds to wait for a missing device. Default: 0. */
  wait?: number
}

/** Milliseconds between two attempts to open a missing device. */
const lookAgain = 20

/** Opens a block device, or a regular file in its place. */
export async function openDevice(
  path: string,
  { write = false, exclusive = false, sectorSize, wait = 0 }: OpenDeviceOptions = {},
): Promise<OpenDevice> {
  const flags = (write ? constants.O_RDWR : constants.O_RDONLY) | (exclusive ? constants.O_EXCL : 0)
  const until = performance.now() + wait
  let handle: FileHandle | undefined
  while (!handle)
    try {
      // Non-blocking: a drive without a medium answers at once.
      handle = await open(path, flags | constants.O_NONBLOCK)
    } catch (error) {
      const absent = ['ENOENT', 'ENXIO'].includes(codeOf(error))
      if (!absent || performance.now() >= until) throw toSystemError('open', path, error)
      await pause(lookAgain)
    }
  try {
    const stats = await handle.stat()
    if (!stats.isBlockDevice()) return new Device(path, handle, stats.size, sectorSize ?? 512)
    return new Device(path, handle, deviceSize(handle.fd, path), deviceSectorSize(handle.fd, path))
  } catch (error) {
    await handle.close()
    throw toSystemError('open', path, error)
  }
}

class Device implements OpenDevice {
  constructor(
    readonly path: string,
    readonly handle: FileHandle,
    readonly size: number,
    readonly sectorSize: number,
  ) {}

  async read(offset: number, length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length)
    for (let done = 0; done < length; ) {
      const { bytesRead } = await this.#try('read', () => this.handle.read(bytes, done, length - done, offset + done))
      if (bytesRead === 0) throw new SystemError('read', 'EIO', quoted(this.path), `it ends at ${offset + done}`)
      done += bytesRead
    }
    return bytes
  }

  async write(offset: number, bytes: Uint8Array): Promise<void> {
    if (offset + bytes.length > this.size) throw new SystemError('write', 'ENOSPC', quoted(this.path), `beyond its ${this.size} bytes`)
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.#try('write', () => this.handle.write(bytes, done, bytes.length - done, offset + done))
      done += bytesWritten
    }
  }

  flush(): Promise<void> {
    return this.#try('fsync', () => this.handle.sync())
  }

  close(): Promise<void> {
    return this.#try('close', () => this.handle.close())
  }

  async #try<T>(call: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      throw toSystemError(call, this.path, error)
    }
  }
}

function deviceSize(fd: number, path: string): number {
  const size = new BigUint64Array(1)
  ioctl(fd, request.size, size, `BLKGETSIZE64 ${quoted(path)}`)
  return Number(size[0])
}

function deviceSectorSize(fd: number, path: string): number {
  const size = new Uint32Array(1)
  ioctl(fd, request.sectorSize, size, `BLKSSZGET ${quoted(path)}`)
  const [bytes = 0] = size
  return bytes
}

function withDevice<T>(path: string, flags: number, run: (fd: number) => T): T {
  const fd = translated('open', path, () => openSync(path, flags))
  try {
    return run(fd)
  } finally {
    closeSync(fd)
  }
}

/** A partition as passed to the kernel. Bytes. */
export interface KernelPartition {
  index: number
  offset: number
  size: number
}

const partitionOperation = { add: 1, delete: 2, resize: 3 } as const

/** Changes one partition in the kernel without touching the others (BLKPG). */
function changePartition(path: string, operation: keyof typeof partitionOperation, { index, offset, size }: KernelPartition): void {
  if (endianness() !== 'LE') throw new SystemError('BLKPG', 'EINVAL', quoted(path), 'only little endian machines')
  const partition = Buffer.alloc(152) // struct blkpg_partition
  partition.writeBigInt64LE(BigInt(offset), 0)
  partition.writeBigInt64LE(BigInt(size), 8)
  partition.writeInt32LE(index, 16)
  const argument = Buffer.alloc(24) // struct blkpg_ioctl_arg
  argument.writeInt32LE(partitionOperation[operation], 0)
  argument.writeInt32LE(partition.length, 8)
  argument.writeBigUInt64LE(BigInt(ptr(partition)), 16)
  withDevice(path, constants.O_RDONLY, (fd) =>
    ioctl(fd, request.partition, argument, `BLKPG ${operation} partition ${index} of ${quoted(path)}`),
  )
}

const sysfsFolder = (disk: string) => `/sys/class/block/${basename(disk).replaceAll('/', '!')}`

/** The partitions of a disk in the kernel, as /sys shows them. */
export function kernelPartitions(disk: string): KernelPartition[] {
  const folder = sysfsFolder(disk)
  const number = (path: string) => Number(readFileSync(`${folder}/${path}`, 'utf8'))
  return translated('list', folder, () =>
    readdirSync(folder)
      .filter((each) => existsSync(`${folder}/${each}/partition`))
      .map((each) => ({ index: number(`${each}/partition`), offset: number(`${each}/start`) * 512, size: number(`${each}/size`) * 512 })),
  )
}

/** Milliseconds within which a program that probes a new device, such as udevd, closes it. */
const probeTime = 10_000
const retryInterval = 50

/**
 * Sets the kernel's partitions of a disk. The whole table is re-read where the disk is not in use; otherwise only differences
 * are changed. Throws EBUSY when a partition to be removed is in use, and not just being probed. udevd triggers a re-read of
 * the table too after it was written: partitions then come and go concurrently, so the call is retried.
 */
export async function syncPartitions(disk: string, wanted: readonly KernelPartition[], { timeout = probeTime } = {}): Promise<void> {
  const until = performance.now() + timeout
  for (;;)
    try {
      return trySync(disk, wanted)
    } catch (error) {
      const passing = failedWith(error, 'EBUSY') || (failedWith(error, 'ENOENT', 'ENXIO') && existsSync(sysfsFolder(disk)))
      if (!passing || performance.now() > until) throw error
      await pause(retryInterval)
    }
}

function trySync(disk: string, wanted: readonly KernelPartition[]): void {
  try {
    withDevice(disk, constants.O_RDONLY, (fd) => ioctlNumber(fd, request.rereadPartitions, 0, `BLKRRPART ${quoted(disk)}`))
  } catch (error) {
    if (!failedWith(error, 'EBUSY', 'EINVAL')) throw error // EINVAL: a loop device that without partition scanning
  }
  const present = new Map(kernelPartitions(disk).map((each) => [each.index, each]))
  for (const { index, ...place } of present.values())
    if (wanted.find((each) => each.index === index)?.offset !== place.offset) {
      changePartition(disk, 'delete', { index, ...place })
      present.delete(index)
    }
  for (const partition of wanted) {
    const there = present.get(partition.index)
    if (!there) changePartition(disk, 'add', partition)
    else if (there.size !== partition.size) changePartition(disk, 'resize', partition)
  }
}

const piece = { discard: 1 << 30, zero: 16 << 20 }

/** Discards the contents of a device; false where the device does not support it. Stops early when the signal is aborted. */
export async function discard(path: string, signal?: AbortSignal): Promise<boolean> {
  return inPieces(path, request.discard, piece.discard, 'BLKDISCARD', signal)
}

/** Fills a device with zeros, offloaded to the device where it supports that. */
export async function zeroOut(path: string, signal?: AbortSignal): Promise<void> {
  if (!(await inPieces(path, request.zeroOut, piece.zero, 'BLKZEROOUT', signal)))
    throw new SystemError('BLKZEROOUT', 'EOPNOTSUPP', quoted(path))
}

/** In pieces, so that the event loop runs in between. */
async function inPieces(path: string, what: number, step: number, call: string, signal?: AbortSignal): Promise<boolean> {
  const fd = translated('open', path, () => openSync(path, constants.O_RDWR | constants.O_EXCL))
  try {
    const size = deviceSize(fd, path)
    for (let offset = 0; offset < size; offset += step) {
      signal?.throwIfAborted()
      ioctl(fd, what, BigUint64Array.of(BigInt(offset), BigInt(Math.min(step, size - offset))), `${call} ${quoted(path)}`)
      await new Promise(setImmediate)
    }
    return true
  } catch (error) {
    if (failedWith(error, 'EOPNOTSUPP', 'ENOTTY', 'ENOTSUPP', 'EINVAL')) return false
    throw error
  } finally {
    closeSync(fd)
  }
}

const XFS_IOC_FSGEOMETRY_V1 = 0x80705864
const XFS_IOC_FSGROWFSDATA = 0x4010586e

/** Grows a mounted XFS to `size` bytes; false when it has that size already. */
export function growXfs(target: string, size: number): boolean {
  return withDevice(target, constants.O_RDONLY, (fd) => {
    const geometry = Buffer.alloc(112)
    ioctl(fd, XFS_IOC_FSGEOMETRY_V1, geometry, `XFS_IOC_FSGEOMETRY ${quoted(target)}`)
    const blocks = BigInt(Math.floor(size / geometry.readUInt32LE(0)))
    if (blocks <= geometry.readBigUInt64LE(32)) return false
    const wanted = Buffer.alloc(16) // struct xfs_growfs_data
    wanted.writeBigUInt64LE(blocks, 0)
    wanted.writeUInt32LE(geometry.readUInt32LE(28), 8)
    ioctl(fd, XFS_IOC_FSGROWFSDATA, wanted, `XFS_IOC_FSGROWFSDATA ${quoted(target)}`)
    return true
  })
}

const c = libc({
  swapon: { args: ['ptr', 'i32'], returns: 'i32' },
  swapoff: { args: ['ptr'], returns: 'i32' },
})

/** swapon(2), with the kernel's default priority. */
export function swapOn(path: string): void {
  check('swapon', c().swapon(cString(path), 0), quoted(path))
}

/** swapoff(2): EINVAL when it is not in use as swap. */
export function swapOff(path: string): void {
  check('swapoff', c().swapoff(cString(path)), quoted(path))
}
