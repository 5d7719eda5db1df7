/**
 * File systems by their superblocks. Detection is lenient: a superblock with a wrong checksum may still belong to a file
 * system in use, and a check whether a device is empty must find it.
 */
import { isPower, labelText, type Signature, signature, uuidText } from './signature.ts'
import type { DeviceView } from './view.ts'

type Probe = (view: DeviceView) => Signature | undefined

const buffer = (bytes: Uint8Array | undefined): Buffer | undefined => bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** XFS (xfs_format.h, struct xfs_dsb), big endian. An unfinished one does not count (sb_inprogress). */
const xfs: Probe = (view) => {
  const block = buffer(view.bytes(0, 512))
  if (block?.toString('latin1', 0, 4) !== 'XFSB' || block[126] !== 0) return undefined
  const blockSize = block.readUInt32BE(4)
  const sectorSize = block.readUInt16BE(102)
  if (!isPower(blockSize, 512, 65536) || !isPower(sectorSize, 512, 32768)) return undefined
  const blocks = Number(block.readBigUInt64BE(8))
  return signature({
    name: 'xfs',
    uuid: uuidText(block.subarray(32, 48)),
    label: labelText(block.subarray(108, 120)),
    blockSize: sectorSize,
    filesystemBlockSize: blockSize,
    size: blocks * blockSize,
  })
}

/** ext2, ext3 and ext4 (struct ext4_super_block), little endian. */
const ext: Probe = (view) => {
  const block = buffer(view.bytes(1024, 1024))
  if (block?.readUInt16LE(0x38) !== 0xef53) return undefined
  const power = block.readUInt32LE(0x18)
  if (power > 6) return undefined
  const blockSize = 1024 << power
  const wide = (block.readUInt32LE(0x60) & 0x80) !== 0 // feature 64bit
  const blocks = block.readUInt32LE(4) + (wide ? block.readUInt32LE(0x150) * 2 ** 32 : 0)
  return signature({
    name: 'extfs',
    uuid: uuidText(block.subarray(0x68, 0x78)),
    label: labelText(block.subarray(0x78, 0x88)),
    blockSize,
    filesystemBlockSize: blockSize,
    size: blocks * blockSize,
  })
}

/** FAT12, FAT16 and FAT32 (Microsoft's FAT specification 1.03). */
const vfat: Probe = (view) => {
  const block = buffer(view.bytes(0, 512))
  if (block?.readUInt16LE(510) !== 0xaa55) return undefined
  const sectorSize = block.readUInt16LE(11)
  const perCluster = block.readUInt8(13)
  const reserved = block.readUInt16LE(14)
  const tables = block.readUInt8(16)
  const media = block.readUInt8(21)
  if (!isPower(sectorSize, 512, 4096) || !isPower(perCluster, 1, 128) || reserved === 0 || tables === 0 || tables > 2) return undefined
  if (media !== 0xf0 && media < 0xf8) return undefined
  const wide = block.readUInt16LE(22) === 0
  if (wide && (block.readUInt32LE(36) === 0 || block.readUInt16LE(17) !== 0)) return undefined
  const extra = wide ? 66 : 38
  const described = block[extra] === 0x29
  const id = block
    .readUInt32LE(extra + 1)
    .toString(16)
    .padStart(8, '0')
    .toUpperCase()
  const label = described ? labelText(block.subarray(extra + 5, extra + 16), 'latin1') : undefined
  const sectors = block.readUInt16LE(19) || block.readUInt32LE(32)
  return signature({
    name: 'vfat',
    uuid: described ? `${id.slice(0, 4)}-${id.slice(4)}` : undefined,
    label: label === 'NO NAME' ? undefined : label,
    blockSize: sectorSize,
    filesystemBlockSize: sectorSize * perCluster,
    size: sectors * sectorSize,
  })
}

/** SquashFS 4 (fs/squashfs/squashfs_fs.h). */
const squashfs: Probe = (view) => {
  const block = buffer(view.bytes(0, 96))
  if (block?.toString('latin1', 0, 4) !== 'hsqs' || block.readUInt16LE(28) !== 4) return undefined
  const blockSize = block.readUInt32LE(12)
  if (!isPower(blockSize, 4096, 1 << 20)) return undefined
  return signature({ name: 'squashfs', blockSize, filesystemBlockSize: blockSize, size: Number(block.readBigUInt64LE(40)) })
}

/** ISO 9660 (ECMA-119, 8): the primary volume descriptor. */
const iso9660: Probe = (view) => {
  const block = buffer(view.bytes(32768, 2048))
  if (block?.[0] !== 1 || block.toString('latin1', 1, 6) !== 'CD001') return undefined
  const blockSize = block.readUInt16LE(128)
  if (!isPower(blockSize, 512, 2048)) return undefined
  return signature({
    name: 'iso9660',
    label: labelText(block.subarray(40, 72), 'latin1'),
    blockSize: 2048,
    filesystemBlockSize: blockSize,
    size: block.readUInt32LE(80) * blockSize,
  })
}

/** Swap areas (include/linux/swap.h, union swap_header): the magic is at the end of a page. */
const swap: Probe = (view) => {
  for (const page of [4096, 16384, 65536]) {
    if (buffer(view.bytes(page - 10, 10))?.toString('latin1') !== 'SWAPSPACE2') continue
    const header = buffer(view.bytes(1024, 44))
    if (header?.readUInt32LE(0) !== 1) continue
    return signature({
      name: 'swap',
      uuid: uuidText(header.subarray(12, 28)),
      label: labelText(header.subarray(28, 44)),
      blockSize: page,
      filesystemBlockSize: page,
      size: (header.readUInt32LE(4) + 1) * page,
    })
  }
  return undefined
}

/** btrfs (fs/btrfs/accessors.h): its superblock is at 64 KiB. */
const btrfs: Probe = (view) => {
  const block = buffer(view.bytes(65536, 4096))
  if (block?.toString('latin1', 0x40, 0x48) !== '_BHRfS_M') return undefined
  return signature({
    name: 'btrfs',
    uuid: uuidText(block.subarray(0x20, 0x30)),
    label: labelText(block.subarray(0x12b, 0x22b)),
    blockSize: block.readUInt32LE(0x90),
    filesystemBlockSize: block.readUInt32LE(0x90),
    size: Number(block.readBigUInt64LE(0x70)),
  })
}

/** All of them. FAT is last, because its signature is the least specific. */
export const fileSystems: readonly Probe[] = [xfs, ext, btrfs, squashfs, iso9660, swap, vfat]
