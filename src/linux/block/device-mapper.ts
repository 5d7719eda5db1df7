/** Encrypted mappings of the kernel's device mapper (Documentation/admin-guide/device-mapper/dm-crypt.rst). */
import { closeSync, openSync, statSync } from 'node:fs'
import { type MapperAnswer, type MapperRequest, mapperFlags, readMapperAnswer, writeMapperRequest } from '../../wire/block/device-mapper.ts'
import { failedWith } from '../../wire/errno.ts'
import { ioctl } from '../ioctl.ts'
import { quoted } from '../libc.ts'
import { withKey } from '../system/keyring.ts'
import { translated } from '../system-error.ts'

const control = '/dev/mapper/control'

/** Requests of linux/dm-ioctl.h: `_IOWR(0xfd, number, struct dm_ioctl)`. */
const commands = { create: 3, remove: 4, suspend: 6, status: 7, load: 9 } as const
const requestOf = (number: number): number => 0xc138fd00 + number

/** An encrypted mapping. */
export interface CryptMapping {
  readonly name: string
  readonly uuid: string
  /** Length in sectors of 512 bytes. */
  readonly sectors: number
  /** Parameters of the target, which name the key by `keyName`. */
  readonly parameters: string
  readonly keyName: string
  readonly key: Uint8Array
}

/** A mapping that exists. */
export interface Mapped {
  /** Its block device. */
  readonly device: string
  readonly uuid: string
}

/** The number of a block device, as tables name it: `major:minor`. */
export function deviceNumber(path: string): string {
  const { rdev } = translated('stat', path, () => statSync(path))
  return `${(rdev >> 8) & 0xfff}:${(rdev & 0xff) | ((rdev >> 12) & 0xfff00)}`
}

/**
 * Creates an encrypted mapping. The key goes through the keyring of this thread and stays there only until the kernel has the
 * table, so no other process can read it from the table. Throws EBUSY where there is a mapping of this name.
 */
export function createMapping({ name, uuid, sectors, parameters, keyName, key }: CryptMapping): Mapped {
  return withControl((fd) => {
    const answer = send(fd, 'create', { name, uuid })
    try {
      const targets = [{ type: 'crypt', start: 0, sectors, parameters }]
      withKey(keyName, key, () => send(fd, 'load', { name, flags: mapperFlags.secureData, targets }))
      // Without the flag `suspend` it resumes, which puts the table into use.
      send(fd, 'suspend', { name })
    } catch (error) {
      send(fd, 'remove', { name })
      throw error
    }
    return { device: deviceOf(answer), uuid }
  })
}

/** The mapping of this name that is in use; undefined if there is none. */
export function findMapping(name: string): Mapped | undefined {
  return withControl((fd) => {
    try {
      const answer = send(fd, 'status', { name })
      return (answer.flags & mapperFlags.activePresent) === 0 ? undefined : { device: deviceOf(answer), uuid: answer.uuid }
    } catch (error) {
      if (failedWith(error, 'ENXIO')) return undefined
      throw error
    }
  })
}

/** Removes a mapping. Returns false where there is none. Throws EBUSY while it is in use, if only by a program that probes it. */
export function removeMapping(name: string): boolean {
  return withControl((fd) => {
    try {
      send(fd, 'remove', { name })
      return true
    } catch (error) {
      if (failedWith(error, 'ENXIO')) return false
      throw error
    }
  })
}

const deviceOf = ({ minor }: MapperAnswer): string => `/dev/dm-${minor}`

function withControl<T>(run: (fd: number) => T): T {
  const fd = translated('open', control, () => openSync(control, 'r+'))
  try {
    return run(fd)
  } finally {
    closeSync(fd)
  }
}

function send(fd: number, command: keyof typeof commands, request: MapperRequest): MapperAnswer {
  const bytes = writeMapperRequest(request)
  ioctl(fd, requestOf(commands[command]), bytes, `device mapper ${command} ${quoted(request.name)}`)
  return readMapperAnswer(bytes)
}
