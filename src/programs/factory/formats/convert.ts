/** Disks of a release in other formats, and compressed, from the raw one. */
import { createReadStream, createWriteStream, rmSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { constants, createGzip, createZstdCompress } from 'node:zlib'
import { writeGcp } from './gcp.ts'
import { writeOva } from './ova.ts'
import { writeQcow2 } from './qcow2.ts'
import { writeVhd } from './vhd.ts'
import { writeVmdk } from './vmdk.ts'

/** Bytes of a disk image for virtual machines: room for the volumes, which grow when the disk is made larger. */
export const virtualDisk = 10 * 1024 ** 3

/** What a format states of a disk beside its content. */
export interface DiskFacts {
  /** As in `v1.13.100`. */
  readonly version: string
  /** Hex; identifies the disk. */
  readonly rootHash: string
  readonly firmware: 'uefi' | 'bios'
}

/** Writes a disk to a path, from the raw one. */
type Convert = (path: string, raw: string, facts: DiskFacts) => Promise<void>

/** Formats by the files of a release. */
export const conversions: Readonly<Record<string, Convert>> = {
  'ichor-amd64.qcow2': (path, raw) => writeQcow2(path, raw, virtualDisk),
  'ichor-amd64.vhd': (path, raw, { rootHash }) => writeVhd(path, raw, rootHash),
  'ichor-amd64.raw.tar.gz': (path, raw) => writeGcp(path, raw),
  'ichor-amd64.vmdk': (path, raw, { rootHash }) => writeVmdk(path, raw, virtualDisk, rootHash),
  async 'ichor-amd64.ova'(path, raw, { version, rootHash, firmware }) {
    const inside = `${path}.vmdk.new`
    try {
      await writeVmdk(inside, raw, virtualDisk, rootHash)
      await writeOva(path, inside, { name: 'ichor-amd64', version, firmware, disk: virtualDisk })
    } finally {
      rmSync(inside, { force: true })
    }
  },
}

/** Fast levels: most of a disk are packed files and zeros. */
const compressors = {
  '.zst': () => createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 3 } }),
  '.gz': () => createGzip({ level: 1 }),
} as const

/** Endings of compressed files. */
export type Compression = keyof typeof compressors

/** Compresses a file. */
export const compress = (path: string, source: string, compression: Compression, signal: AbortSignal): Promise<void> =>
  pipeline(createReadStream(source, { highWaterMark: 1 << 20 }), compressors[compression](), createWriteStream(path), { signal })
