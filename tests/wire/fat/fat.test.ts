import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { parseDirectory } from '../../../src/wire/fat/directory.ts'
import { formatFat } from '../../../src/wire/fat/format.ts'
import { parseBootSector } from '../../../src/wire/fat/geometry.ts'
import { FatVolume } from '../../../src/wire/fat/volume.ts'
import { type MemoryDisk, memoryDisk } from '../../support/memory-disk.ts'
import { runs } from '../../support/runs.ts'
import { everyCut } from './power-cut.ts'

const megabytes = 1 << 20

async function fresh(size = 34 * megabytes, sectorSize = 512) {
  const disk = memoryDisk(size)
  await formatFat(disk, { label: 'EFI', serial: 0x1234abcd, hidden: 2048, sectorSize })
  return { disk, volume: await FatVolume.open(disk) }
}

/** The output of fsck.vfat of dosfstools, where it is installed. */
function judged(disk: MemoryDisk): string {
  const fsck = Bun.which('fsck.vfat') ?? Bun.which('/usr/sbin/fsck.vfat')
  if (!fsck) return ''
  const folder = mkdtempSync(join(tmpdir(), 'ichor-fat-'))
  try {
    const path = join(folder, 'image')
    disk.copy().save(path)
    const { exitCode, stdout } = Bun.spawnSync([fsck, '-n', path])
    return exitCode === 0 ? '' : stdout.toString()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()

test('a new file system is empty, and passes fsck', async () => {
  const { disk, volume } = await fresh()
  expect(await volume.list('/')).toEqual([])
  expect(volume.geometry.label).toBe('EFI')
  expect(judged(disk)).toBe('')
})

test.each([512, 4096])('files of every size are read back after reopening, with sectors of %d bytes', async (sectorSize) => {
  const { disk, volume } = await fresh(sectorSize === 512 ? 34 * megabytes : 260 * megabytes, sectorSize)
  expect(volume.geometry.sectorSize).toBe(sectorSize)
  await volume.mkdirAll('/EFI/BOOT')
  await volume.mkdirAll('/loader/entries')
  const contents = new Map<string, Uint8Array>()
  for (const size of [0, 1, 511, 512, 513, 4096, 1_500_000]) contents.set(`/EFI/BOOT/of-${size}-bytes.bin`, Buffer.alloc(size, size))
  for (let index = 0; index < 30; index++) contents.set(`/loader/entries/ichor-00000${index}-a+3.conf`, Buffer.from(`entry ${index}`))
  for (const [path, bytes] of contents) await volume.create(path, bytes)
  const again = await FatVolume.open(disk)
  for (const [path, bytes] of contents) expect(Buffer.compare(await again.read(path), bytes)).toBe(0)
  expect(text(await again.read('/LOADER/entries/ICHOR-000007-a+3.CONF'))).toBe('entry 7')
  expect(judged(disk)).toBe('')
})

test('with sectors of 4 KiB every write is of whole sectors, except headers', async () => {
  const { disk, volume } = await fresh(260 * megabytes, 4096)
  const wrote = disk.writes.length
  await volume.mkdirAll('/loader')
  await volume.create('/loader/env', Buffer.alloc(5000, '#'))
  await volume.overwrite('/loader/env', Buffer.alloc(100, 'x'))
  await volume.remove('/loader/env')
  for (const call of disk.writes.slice(wrote)) {
    if (call === 'flush') continue
    expect(call.offset % 4096).toBe(0)
    if (call.offset !== 4096) expect(call.bytes.length % 4096).toBe(0)
  }
  expect(judged(disk)).toBe('')
})

test('a disk that is too small for FAT32 is refused with the minimum', async () => {
  await expect(fresh(200 * megabytes, 4096)).rejects.toThrow('FAT32 needs 258 MiB or more here, this is 200 MiB')
  await expect(fresh(20 * megabytes)).rejects.toThrow('FAT32 needs 34 MiB or more here, this is 20 MiB')
  await expect(fresh(34 * megabytes, 8192)).rejects.toThrow('the disk has 8192')
})

test('the upper four bits of an entry are ignored, and kept', async () => {
  const { disk } = await fresh()
  const { reserved, sectorSize } = parseBootSector(await disk.read(0, 512), disk.size)
  /** The highest byte of the entries of four free clusters, of which the first is the next to be used. */
  const places = [3, 4, 5, 6].map((cluster) => reserved * sectorSize + cluster * 4 + 3)
  for (const place of places) await disk.write(place, Uint8Array.of(0xa0))
  const volume = await FatVolume.open(disk)
  await volume.create('/a', Buffer.alloc(1024, 'a'))
  expect(text(await (await FatVolume.open(disk)).read('/a'))).toBe('a'.repeat(1024))
  const high = await Promise.all(places.map(async (place) => (await disk.read(place, 1))[0]! & 0xf0))
  expect(high).toEqual([0xa0, 0xa0, 0xa0, 0xa0])
})

test('a file written in pieces is complete, one that ends early does not exist', async () => {
  const { volume } = await fresh()
  const pieces = async function* () {
    for (let index = 0; index < 5; index++) yield Buffer.alloc(300_007, index)
  }
  await volume.create('/pieces', pieces(), 5 * 300_007)
  expect((await volume.read('/pieces')).length).toBe(5 * 300_007)
  const free = volume.free
  await expect(volume.create('/short', pieces(), 6 * 300_007)).rejects.toThrow('has 1500035 bytes, not 1800042')
  await expect(volume.create('/long', pieces(), 300_007)).rejects.toThrow('longer than its 300007 bytes')
  expect(await volume.has('/short')).toBe(false)
  expect(volume.free).toBe(free)
})

test('without space nothing changes', async () => {
  const { disk, volume } = await fresh()
  await volume.create('/kept', Buffer.from('kept'))
  const before = disk.digest()
  await expect(volume.create('/large', new Uint8Array(40 * megabytes))).rejects.toThrow('no room for "/large"')
  expect(disk.digest()).toBe(before)
})

test('an existing file is not created again, a missing one is not read', async () => {
  const { volume } = await fresh()
  await volume.create('/file', Buffer.from('1'))
  await expect(volume.create('/FILE', Buffer.from('2'))).rejects.toThrow('is there already')
  await expect(volume.create('/folder/file', Buffer.from('2'))).rejects.toThrow('no directory for')
  await expect(volume.read('/absent')).rejects.toThrow('there is no file "/absent"')
  await expect(volume.create('/a*b', Buffer.from('2'))).rejects.toThrow('is not one of FAT32')
  await volume.remove('/absent')
})

test('bytes are changed in place, only where they differ', async () => {
  const { disk, volume } = await fresh()
  await volume.create('/env', Buffer.alloc(1024, '#'))
  const wrote = disk.writes.length
  await volume.overwrite('/env', Buffer.concat([Buffer.alloc(512, '#'), Buffer.alloc(512, 'x')]))
  expect(disk.writes.slice(wrote).filter((call) => call !== 'flush').length).toBe(1)
  expect(text(await volume.read('/env'))).toBe('#'.repeat(512) + 'x'.repeat(512))
})

test('a replaced file is the old or the new one after any power cut', async () => {
  const { disk, volume } = await fresh()
  const [old, next] = [Buffer.alloc(3000, 1), Buffer.alloc(70_000, 2)]
  await volume.create('/a-long-name.conf', old)
  const free = volume.free
  const before = disk.copy()
  const from = disk.writes.length
  await volume.replace('/a-long-name.conf', next)
  const seen = new Set<number>()
  await everyCut(before, disk.writes.slice(from), async (cut) => {
    const found = await (await FatVolume.open(cut)).read('/a-long-name.conf')
    expect([old, next].some((each) => each.equals(found))).toBe(true)
    seen.add(found.length)
  })
  expect(seen).toEqual(new Set([old.length, next.length]))
  await volume.replace('/a-long-name.conf', old)
  expect(volume.free).toBe(free)
  expect(judged(disk)).toBe('')
})

test('any sequence of creating, replacing and removing agrees with a map', async () => {
  const name = fc.constantFrom('A.TXT', 'a-long-name.conf', 'ichor-000001-a+3.conf', 'ichor-000002-b+2-1.conf', 'NOTE', 'x.efi')
  const step = fc.record({ name, size: fc.integer({ min: 0, max: 3000 }), how: fc.constantFrom('create', 'replace', 'remove') })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { disk, volume } = await fresh()
      await volume.mkdirAll('/d')
      const model = new Map<string, number>()
      for (const { name, size, how } of steps) {
        if (how === 'replace') {
          await volume.replace(`/d/${name}`, Buffer.alloc(size, size))
          model.set(name, size)
        } else if (how === 'remove' || model.has(name)) {
          await volume.remove(`/d/${name}`)
          model.delete(name)
        } else {
          await volume.create(`/d/${name}`, Buffer.alloc(size, size))
          model.set(name, size)
        }
      }
      const again = await FatVolume.open(disk)
      const found = (await again.list('/d')).map(({ name, size }) => [name, size] as const)
      expect(new Map(found)).toEqual(model)
      for (const [name, size] of model) expect(Buffer.compare(await again.read(`/d/${name}`), Buffer.alloc(size, size))).toBe(0)
    }),
    { numRuns: runs(25) },
  )
})

test('a malformed file system is refused with a one-line error', () => {
  expect(() => parseBootSector(new Uint8Array(100), 1000)).toThrow('too short')
  expect(() => parseBootSector(new Uint8Array(512), 1 << 30)).toThrow('no signature')
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 512, maxLength: 512 }), (bytes) => {
      bytes.set([0x55, 0xaa], 510)
      try {
        parseBootSector(bytes, 1 << 30)
      } catch (error) {
        expect((error as Error).name).toBe('DecodeError')
      }
    }),
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1024 }), (bytes) => {
      try {
        parseDirectory(bytes)
      } catch (error) {
        expect((error as Error).name).toBe('DecodeError')
      }
    }),
  )
})
