/** Devices that are part of something else: encrypted ones, members of volume groups, arrays and pools, and META. */
import { labelText, type Signature, signature, uuidText } from './signature.ts'
import type { DeviceView } from './view.ts'

type Probe = (view: DeviceView) => Signature | undefined

const buffer = (bytes: Uint8Array | undefined): Buffer | undefined => bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** LUKS 1 and 2 (LUKS2 On-Disk Format Specification, 2.1). */
const luks: Probe = (view) => {
  const header = buffer(view.bytes(0, 512))
  if (header?.toString('latin1', 0, 6) !== 'LUKS\xba\xbe') return undefined
  const version = header.readUInt16BE(6)
  if (version !== 1 && version !== 2) return undefined
  return signature({
    name: 'luks',
    uuid: labelText(header.subarray(168, 208)),
    label: version === 2 ? labelText(header.subarray(24, 72)) : undefined,
  })
}

/** Physical volumes of LVM 2: a label in one of the first four sectors, followed by an id of 32 characters. */
const lvm: Probe = (view) => {
  for (let sector = 0; sector < 4; sector++) {
    const header = buffer(view.bytes(sector * 512, 512))
    if (header?.toString('latin1', 0, 8) !== 'LABELONE' || header.toString('latin1', 24, 32) !== 'LVM2 001') continue
    const at = header.readUInt32LE(20)
    const id = at + 32 <= header.length ? header.toString('latin1', at, at + 32) : ''
    const parts = /^(.{6})(.{4})(.{4})(.{4})(.{4})(.{4})(.{6})$/.exec(id)
    return signature({ name: 'lvm2-pv', uuid: parts?.slice(1).join('-') })
  }
  return undefined
}

const mdMagic = 0xa92b4efc
const raidMember = 'linux_raid_member'

/**
 * Members of Linux software RAID with a superblock of version 1 (md_p.h in Linux): 1.1 at the start, 1.2 after 4 KiB, 1.0 near
 * the end. Each records its own sector, which a stray copy of one does not match.
 */
const raid: Probe = (view) => {
  const nearEnd = Math.floor((view.size - 8192) / 4096) * 4096
  for (const at of [0, 4096, nearEnd]) {
    const block = buffer(view.bytes(at, 256))
    if (block?.readUInt32LE(0) !== mdMagic || block.readUInt32LE(4) !== 1) continue
    if (block.readBigUInt64LE(144) !== BigInt(at / 512)) continue
    return signature({ name: raidMember, uuid: uuidText(block.subarray(16, 32)), label: labelText(block.subarray(32, 64)) })
  }
  return undefined
}

/** Where a RAID superblock of version 0.90 lies on a device of this size: in its last whole 64 KiB. */
export const oldRaidOffset = (size: number): number => Math.floor(size / 65536) * 65536 - 65536

/** Members of Linux software RAID with a superblock of version 0.90, in the byte order of the machine that wrote it. */
export const oldRaid: Probe = (view) => {
  const block = buffer(view.bytes(oldRaidOffset(view.size), 64))
  if (!block) return undefined
  const little = block.readUInt32LE(0) === mdMagic
  if (!little && block.readUInt32BE(0) !== mdMagic) return undefined
  const word = (index: number): number => (little ? block.readUInt32LE(index * 4) : block.readUInt32BE(index * 4))
  if (word(1) !== 0) return undefined
  const uuid = Buffer.alloc(16)
  for (const [place, index] of [5, 13, 14, 15].entries()) uuid.writeUInt32BE(word(index), place * 4)
  return signature({ name: raidMember, uuid: uuidText(uuid) })
}

/** Members of a ZFS pool: the magic of an uberblock, in either byte order, in the ring of the first label. */
const zfs: Probe = (view) => {
  for (let at = 128 << 10; at < 256 << 10; at += 1024) {
    const word = buffer(view.bytes(at, 8))
    if (word && (word.readBigUInt64LE() === 0x00bab10cn || word.readBigUInt64BE() === 0x00bab10cn)) return signature({ name: 'zfs' })
  }
  return undefined
}

/** Devices of a Ceph OSD. */
const bluestore: Probe = (view) =>
  buffer(view.bytes(0, 22))?.toString('latin1') === 'bluestore block device' ? signature({ name: 'bluestore' }) : undefined

/** The META partition. */
const meta: Probe = (view) => (buffer(view.bytes(0, 4))?.readUInt32BE() === 0x5a4b3c2d ? signature({ name: 'talosmeta' }) : undefined)

/** All but `oldRaid`. RAID comes first: a mirror's member with its superblock at the end begins like the file system on the array. */
export const members: readonly Probe[] = [raid, lvm, luks, zfs, bluestore, meta]

/** Whether a signature marks a part of something larger (a volume group, an array, a pool), which must not be used by itself. */
export const isMember = (name: string): boolean => ['lvm2-pv', raidMember, 'zfs', 'bluestore'].includes(name)
