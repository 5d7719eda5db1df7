/** A disk as the installation makes it, with the release in slot A, marked good: for machines that are given a disk image. */
import { createReadStream, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parseManifest } from '../../src/oci/image-manifest.ts'
import { type PlannedPartition, planDisk } from '../../src/os/block/layout.ts'
import { writeMetaPartition } from '../../src/os/block/meta/partition.ts'
import { type Firmware, installPartitions } from '../../src/os/lifecycle/install/layout.ts'
import { type Release as SignedRelease, slotRelease } from '../../src/os/lifecycle/release/release.ts'
import { Grub } from '../../src/os/lifecycle/slots/grub.ts'
import { grubBlocks } from '../../src/os/lifecycle/slots/grub-core.ts'
import { loaderFilesOf } from '../../src/os/lifecycle/slots/loader-renewal.ts'
import type { BootLoader } from '../../src/os/lifecycle/slots/slot.ts'
import { SystemdBoot } from '../../src/os/lifecycle/slots/systemd-boot.ts'
import { diskOn } from '../../src/programs/factory/release/disk-file.ts'
import { formatFat } from '../../src/wire/fat/format.ts'
import { FatVolume } from '../../src/wire/fat/volume.ts'
import { writeTable } from '../../src/wire/gpt/table.ts'
import { hashOf } from '../build/cache.ts'
import type { CacheFile } from './image-cache.ts'
import { imageCacheSize, writeImageCache } from './image-cache-disk.ts'
import type { MetaValue } from './options.ts'
import type { Board } from './overlay/overlay.ts'
import type { Release } from './release.ts'
import { fileOf, sizeOf } from './release.ts'
import { uuidOf } from './uuid.ts'

const sectorSize = 512
const mebibyte = 1 << 20

/** What a disk holds besides the release. */
export interface DiskParts {
  readonly firmware: Firmware
  readonly meta?: readonly MetaValue[]
  readonly cache?: readonly CacheFile[]
  readonly board?: Board | undefined
}

/** Writes the disk to a file; stretches of zeros take no room. Equal releases give equal bytes. */
export async function writeDisk(path: string, release: Release, { firmware, meta = [], cache = [], board }: DiskParts): Promise<void> {
  const images: PlannedPartition[] = cache.length > 0 ? [{ label: 'IMAGECACHE', type: 'linux', size: imageCacheSize(cache) }] : []
  const plan = [...installPartitions(firmware), ...images]
  const size = plan.reduce((sum, each) => sum + (each.size ?? 0), 2 * mebibyte)
  const { table, partitions } = planDisk({ path, size, sectorSize }, { partitions: plan })
  const guid = (what: string) => uuidOf(`${release.verity.rootHash} ${firmware} ${what}`)
  table.diskGuid = guid('disk')
  for (const partition of table.partitions) partition.guid = guid(partition.name)
  const signed = signedRelease(release)
  const file = await open(path, 'w+', 0o644)
  try {
    await file.truncate(size)
    const disk = diskOn(file, 0, size)
    for (const step of writeTable(table, { protective: true })) for (const { offset, bytes } of step) await disk.write(offset, bytes)
    for (const { label, offset, size: bytes } of partitions) {
      if (label === 'META' && meta.length > 0) {
        const values = new Map(meta.map(({ key, value }) => [key, Buffer.from(value)]))
        await writeMetaPartition(diskOn(file, offset, bytes), { values, legacy: new Map() })
      }
      if (label === 'IMAGECACHE') await copyInto(file, offset, `${path}.images`, (made) => writeImageCache(made, cache, guid('images')))
      if (label !== 'EFI' && label !== 'BOOT') continue
      const partition = diskOn(file, offset, bytes)
      const serial = Number.parseInt(hashOf(guid(label)).slice(0, 8), 16)
      await formatFat(partition, { label, serial, hidden: offset / sectorSize })
      if (firmware === 'bios' && label === 'EFI') continue
      const volume = await FatVolume.open(partition)
      const loader: BootLoader =
        firmware === 'bios' ? new Grub(volume) : new SystemdBoot(volume, undefined, loaderFilesOf(release.target.arch).loader)
      await loader.prepare()
      await loader.write('a', await slotRelease(signed))
      await loader.keep('a')
      await loader.arm?.(signed.open, signed.size)
      for (const [name, content] of board?.files ?? []) {
        if (name.includes('/')) await volume.mkdirAll(dirname(name))
        await volume.create(name, content)
      }
    }
    const home = partitions.find(({ label }) => label === 'BIOS')
    if (home && release.grub)
      for (const { offset, bytes } of grubBlocks(release.grub.boot, release.grub.core, home)) await disk.write(offset, bytes)
  } finally {
    await file.close()
  }
}

/** Has a file made and copies it to a place of the disk, without its zeros. */
async function copyInto(disk: FileHandle, offset: number, path: string, make: (path: string) => Promise<void>): Promise<void> {
  try {
    await make(path)
    const zeros = Buffer.alloc(mebibyte)
    let at = offset
    for await (const chunk of createReadStream(path, { highWaterMark: mebibyte })) {
      const bytes = chunk as Buffer
      if (!bytes.equals(zeros.subarray(0, bytes.length))) await disk.write(bytes, 0, bytes.length, at)
      at += bytes.length
    }
  } finally {
    for (const each of [path, `${path}.commands`]) rmSync(each, { force: true })
  }
}

function signedRelease(release: Release): SignedRelease {
  const text = fileOf(release, 'manifest')
  return {
    origin: release.folder,
    manifest: parseManifest(text.toString('utf8')),
    image: hashOf(text).slice(0, 16),
    size: (name) => sizeOf(release, name),
    open: (name) => Bun.file(join(release.folder, name)).stream(),
  }
}
