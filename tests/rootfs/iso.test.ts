import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type IsoFile, makeIso } from '../../rootfs/image/iso.ts'
import { IsoError } from '../../rootfs/image/iso-sectors.ts'
import { makeEfiPartition } from '../../src/programs/factory/release/efi-partition.ts'
import { readIso } from './read-iso.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-iso-'))
afterAll(() => rmSync(folder, { recursive: true }))

const efi = { file: join(folder, 'efi'), size: 40 * 2048 }
writeFileSync(efi.file, Buffer.alloc(efi.size, 0xee))

function iso(files: readonly IsoFile[], { bios = true } = {}): Buffer {
  const segments = makeIso({
    label: 'TEST',
    files,
    grub: bios ? { medium: Buffer.alloc(5000, 0x90), hybrid: Buffer.alloc(512, 0xfa) } : undefined,
    efi,
    serial: 0x12345678,
  })
  return Buffer.concat(
    segments.map((each) => ('bytes' in each ? each.bytes : readFileSync(each.file).subarray(each.offset, each.offset + each.length))),
  )
}

test('files of its own and stretches of the system partition are read back', () => {
  const image = iso([
    { path: 'ichor/0123456789abcdef.sqsh', content: { offset: 2 * 2048, size: 5000 } },
    { path: 'boot/grub/grub.cfg', content: Buffer.from('set timeout=3\n') },
    { path: 'boot/empty', content: Buffer.alloc(0) },
    { path: 'top', content: Buffer.alloc(2048, 1) },
  ])
  const { label, files } = readIso(image)
  expect(label).toBe('TEST')
  expect([...files.keys()].sort()).toEqual(['boot/empty', 'boot/grub/grub.cfg', 'ichor/0123456789abcdef.sqsh', 'top'])
  expect(files.get('boot/grub/grub.cfg')?.toString()).toBe('set timeout=3\n')
  expect(files.get('boot/empty')).toHaveLength(0)
  expect(files.get('ichor/0123456789abcdef.sqsh')).toEqual(Buffer.alloc(5000, 0xee))
  expect(files.get('top')).toEqual(Buffer.alloc(2048, 1))
})

test('a file may be followed by room for a longer one', () => {
  const of = (room: number) => iso([{ path: 'a', content: Buffer.from('a'), room }])
  expect(of(6144).length - of(0).length).toBe(2 * 2048)
  expect(readIso(of(6144)).files.get('a')?.toString()).toBe('a')
})

test('a folder of many files takes more than one sector', () => {
  const files = Array.from({ length: 120 }, (_, at) => ({ path: `many/file-${at}.txt`, content: Buffer.from(`number ${at}`) }))
  const found = readIso(iso(files)).files
  expect(found.size).toBe(120)
  expect(found.get('many/file-119.txt')?.toString()).toBe('number 119')
})

test('both firmwares find where to begin, on CDs and on sticks', () => {
  const image = iso([{ path: 'a', content: Buffer.from('a') }])
  const { boot, files } = readIso(image)
  expect(files.size).toBe(1)
  expect(boot.bios.sectors).toBe(4)
  const grub = image.subarray(boot.bios.start * 2048)
  expect(grub.readUInt32LE(8)).toBe(16) // where the volume descriptor is
  expect(grub.readUInt32LE(12)).toBe(boot.bios.start)
  expect(grub.readUInt32LE(16)).toBe(5000)
  expect(Number(grub.readBigUInt64LE(2048 + 500))).toBe(boot.bios.start * 4 + 5)
  expect(image.subarray(boot.efi.start * 2048)).toEqual(readFileSync(efi.file))
  // The boot sector: GRUB's code, its pointer, and the partition for UEFI.
  expect(image[0]).toBe(0xfa)
  expect(Number(image.readBigUInt64LE(0x1b0))).toBe(boot.bios.start * 4 + 4)
  expect(image.readUInt32LE(0x1b8)).toBe(0x12345678)
  expect(image[0x1ce + 4]).toBe(0xef)
  expect(image.readUInt32LE(0x1ce + 8)).toBe(boot.efi.start * 4)
  expect(image.readUInt32LE(0x1ce + 12)).toBe(efi.size / 512)
  expect(image.readUInt16LE(510)).toBe(0xaa55)
})

test('equal parts give equal bytes', () => {
  const files = [{ path: 'boot/a', content: Buffer.from('a') }]
  expect(iso(files)).toEqual(iso(files))
})

test.each([
  ['a//x', '"" cannot be the name of a file'],
  ['with space', '"with space" cannot be the name of a file'],
  [`${'x'.repeat(201)}`, 'cannot be the name of a file'],
])('the path "%s" is refused', (path, message) => {
  expect(() => iso([{ path, content: Buffer.alloc(1) }])).toThrow(message)
  expect(() => iso([{ path, content: Buffer.alloc(1) }])).toThrow(IsoError)
})

test('a path that is there twice, and a stretch that no sector begins with, are refused', () => {
  const one = { path: 'a', content: Buffer.alloc(1) }
  expect(() => iso([one, one])).toThrow('is there twice')
  expect(() => iso([{ path: 'a', content: { offset: 512, size: 1 } }])).toThrow('does not begin at a multiple of 2 KiB')
})

test('the files of a system partition lie in one piece, where a CD can name them', async () => {
  const path = join(folder, 'partition')
  const big = Buffer.alloc(300_000, 'big')
  const { size, offsets } = await makeEfiPartition(
    path,
    [
      { path: 'EFI/BOOT/BOOTX64.EFI', content: Buffer.alloc(777, 1) },
      { path: 'EFI/Linux/kernel.efi', content: big },
    ],
    { label: 'TEST', serial: 7 },
  )
  const image = readFileSync(path)
  expect(image).toHaveLength(size)
  const offset = offsets.get('EFI/Linux/kernel.efi')!
  expect(offset % 2048).toBe(0)
  expect(image.subarray(offset, offset + big.length)).toEqual(big)
})

test('without GRUB the catalog has one entry, for UEFI, and a stick has one partition', () => {
  const image = iso([{ path: 'a', content: Buffer.from('a') }], { bios: false })
  const catalog = image.subarray(image.readUInt32LE(17 * 2048 + 71) * 2048)
  const start = catalog.readUInt32LE(40)
  expect([catalog[1], catalog[32], catalog.readUInt16LE(38)]).toEqual([0xef, 0x88, 0])
  expect(catalog.subarray(64, 128)).toEqual(Buffer.alloc(64))
  expect(image.subarray(start * 2048)).toEqual(readFileSync(efi.file))
  expect(image.subarray(0, 0x1b8)).toEqual(Buffer.alloc(0x1b8))
  expect(image.subarray(0x1be, 0x1ce)).toEqual(Buffer.alloc(16))
  expect([image[0x1ce + 4], image.readUInt32LE(0x1ce + 8)]).toEqual([0xef, start * 4])
})

test('names that the format has no room for are alternate names, and files may come from elsewhere', () => {
  const blob = join(folder, 'blob')
  writeFileSync(blob, 'a layer')
  const digest = `sha256-${'0123456789abcdef'.repeat(4)}`
  const files: IsoFile[] = [
    { path: 'plain', content: Buffer.from('plain') },
    { path: `imagecache/blob/${digest}`, content: { file: blob, size: 7 } },
    { path: 'imagecache/manifests/host_5000_/app/reference/V1.0-RC1', content: Buffer.from('{}') },
    { path: 'imagecache/manifests/host_5000_/app/reference/v1.0-rc1', content: Buffer.from('[]') },
    { path: 'ichor/root', content: { offset: 2048, size: 3 } },
  ]
  const read = readIso(iso(files)).files
  expect([...read].map(([path, content]) => [path, content.toString('latin1')])).toEqual(
    expect.arrayContaining([
      ['plain', 'plain'],
      [`imagecache/blob/${digest}`, 'a layer'],
      ['imagecache/manifests/host_5000_/app/reference/V1.0-RC1', '{}'],
      ['imagecache/manifests/host_5000_/app/reference/v1.0-rc1', '[]'],
      ['ichor/root', '\xee\xee\xee'],
    ]),
  )
  expect(() => iso([{ path: 'a', content: { file: blob, size: 2 ** 32 } }])).toThrow('4 GiB or more')
})
