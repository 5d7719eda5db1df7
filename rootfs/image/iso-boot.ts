/** How an ISO image starts: the catalog of El Torito for CDs, the boot sector for sticks, and GRUB with its own place filled in. */
import type { IsoParts } from './iso.ts'
import { IsoError, roundUp, sector, systemArea } from './iso-sectors.ts'

/** Bytes of a sector of disks. */
const diskSector = 512

/** El Torito's number of a platform of UEFI (UEFI 2.10, 13.3.2.1). */
const forUefi = 0xef

/** The boot catalog: BIOS starts the file it is given, if there is one; UEFI takes all from there to the end as a system partition. */
export function bootCatalog(grub: number | undefined, efi: number): Buffer {
  const bytes = Buffer.alloc(sector)
  bytes[0] = 1 // validation
  if (grub === undefined) bytes[1] = forUefi
  bytes[30] = 0x55
  bytes[31] = 0xaa
  let sum = 0
  for (let at = 0; at < 32; at += 2) sum += bytes.readUInt16LE(at)
  bytes.writeUInt16LE(-sum & 0xffff, 28)
  bytes[32] = 0x88 // bootable, no emulation
  if (grub === undefined) {
    bytes.writeUInt32LE(efi, 40) // up to the end, as below
    return bytes
  }
  bytes.writeUInt16LE(4, 38) // sectors of 512 bytes to load
  bytes.writeUInt32LE(grub, 40)
  bytes[64] = 0x91 // the last section
  bytes[65] = forUefi
  bytes.writeUInt16LE(1, 66)
  bytes[96] = 0x88
  bytes.writeUInt16LE(0, 102) // up to the end (UEFI 2.10, 13.3.2.1)
  bytes.writeUInt32LE(efi, 104)
  return bytes
}

/** GRUB with its own position filled in: the boot info table of mkisofs, and the pointer to its second sector. */
export function placedGrub(grub: Uint8Array, start: number): Buffer {
  const bytes = Buffer.concat([grub, Buffer.alloc(roundUp(grub.length) - grub.length)])
  bytes.fill(0, 8, 64)
  bytes.writeUInt32LE(systemArea, 8)
  bytes.writeUInt32LE(start, 12)
  bytes.writeUInt32LE(grub.length, 16)
  bytes.writeBigUInt64LE(BigInt(start * 4 + 5), sector + 500)
  let sum = 0
  for (let at = 64; at < grub.length - (grub.length % 4); at += 4) sum = (sum + bytes.readUInt32LE(at)) >>> 0
  bytes.writeUInt32LE(sum, 20)
  return bytes
}

/** The boot sector of sticks: GRUB's, if there is one, and a partition for UEFI. */
export function masterBootRecord(
  { grubSector = Buffer.alloc(diskSector), serial, efi }: Pick<IsoParts, 'serial' | 'efi'> & { grubSector?: Uint8Array | undefined },
  grub: number | undefined,
  efiStart: number,
): Buffer {
  if (grubSector.length !== diskSector) throw new IsoError('the boot sector for sticks is not 512 bytes long')
  const bytes = Buffer.from(grubSector)
  if (grub !== undefined) bytes.writeBigUInt64LE(BigInt(grub * 4 + 4), 0x1b0) // behind the sector that CDs begin with
  bytes.writeUInt32LE(serial >>> 0, 0x1b8)
  bytes.fill(0, 0x1bc, 0x1fe)
  const entry = (at: number, status: number, type: number, start: number, count: number) => {
    bytes.set([status, 0xfe, 0xff, 0xff, type, 0xfe, 0xff, 0xff], at)
    bytes.writeUInt32LE(start, at + 8)
    bytes.writeUInt32LE(count, at + 12)
  }
  const end = efiStart * 4 + efi.size / diskSector
  // Some BIOSes start only disks with an active partition; one of no type is nobody's and may lie over the other.
  if (grub !== undefined) entry(0x1be, 0x80, 0, 0, end)
  entry(0x1ce, 0, 0xef, efiStart * 4, efi.size / diskSector)
  bytes.writeUInt16LE(0xaa55, 0x1fe)
  return bytes
}
