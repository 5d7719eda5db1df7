import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { newTable, writeTable } from '../../src/wire/gpt/table.ts'
import { probe } from '../../src/wire/probe/probe.ts'
import { type DeviceView, viewOf } from '../../src/wire/probe/view.ts'
import { swapHeader } from '../../src/wire/swap.ts'
import { raidSuperblock } from '../os/block/raid-superblock.ts'
import { runs } from '../support/runs.ts'

const mebibyte = 1 << 20
const whole = (bytes: Uint8Array): DeviceView => viewOf(bytes.length, [{ offset: 0, bytes }])

/** A view that fails on reads outside of the device. */
function guarded(bytes: Uint8Array): DeviceView {
  return {
    size: bytes.length,
    bytes(offset, length) {
      if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length)) throw new RangeError(`read of ${length} at ${offset}`)
      return whole(bytes).bytes(offset, length)
    },
  }
}

/** Places and texts of every signature, so that noise gets past the first look. */
const magics: readonly [offset: number, text: string][] = [
  [0, 'XFSB'],
  [1024 + 0x38, '\x53\xef'],
  [510, '\x55\xaa'],
  [0, 'hsqs'],
  [32768, '\x01CD001'],
  [4086, 'SWAPSPACE2'],
  [65536 + 0x40, '_BHRfS_M'],
  [0, 'LUKS\xba\xbe\0\x02'],
  [512, 'LABELONE'],
  [512 + 24, 'LVM2 001'],
  [4096, '\xfc\x4e\x2b\xa9\x01\0\0\0'],
  [512, 'EFI PART'],
  [0, '\x5a\x4b\x3c\x2d'],
]

describe('probing', () => {
  test('finds nothing on an empty device, on zeros and on less than a sector', () => {
    for (const size of [0, 1, 511, 512, 4096, mebibyte]) expect(probe(guarded(new Uint8Array(size)), 512)).toBeUndefined()
  })

  test('never reads past the end nor throws, whatever follows a magic, on a device of any size', () => {
    const magic = fc.constantFrom(...magics)
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 140_000 }),
        fc.array(magic, { maxLength: 4 }),
        fc.uint8Array({ maxLength: 700 }),
        (size, chosen, noise) => {
          const bytes = Buffer.alloc(size)
          for (const [offset, text] of chosen) {
            bytes.set(noise.subarray(0, Math.max(0, size - offset)), Math.min(offset, size))
            if (offset + text.length <= size) bytes.write(text, offset, 'latin1')
          }
          for (const sectorSize of [512, 4096]) probe(guarded(bytes), sectorSize)
        },
      ),
      { numRuns: runs(400) },
    )
  })

  test('distinguishes a protected, damaged GPT from an empty disk', () => {
    const table = newTable({ sectorSize: 512, size: 8 * mebibyte, diskGuid: crypto.randomUUID() })
    const image = new Uint8Array(8 * mebibyte)
    for (const { offset, bytes } of writeTable(table, { protective: true }).flat()) image.set(bytes, offset)
    expect(probe(whole(image), 512)).toMatchObject({ name: 'gpt', uuid: table.diskGuid, table: { partitions: [] } })
    image.fill(0, 512, 1024)
    image.fill(0, image.length - 512)
    const found = probe(whole(image), 512)
    expect(found?.name).toBe('gpt')
    expect(found?.table).toBeUndefined()
    image.fill(0, 0, 512)
    expect(probe(whole(image), 512)).toBeUndefined()
  })

  test('detects a member of an array before what lies on the array', () => {
    for (const version of ['0.90', '1.0', '1.1', '1.2'] as const) {
      const image = Buffer.alloc(mebibyte)
      if (version === '0.90' || version === '1.0') image.write('LUKS\xba\xbe\0\x02', 0, 'latin1')
      const { offset, bytes } = raidSuperblock(version, image.length)
      image.set(bytes, offset)
      expect(probe(whole(image), 512)).toMatchObject({ name: 'linux_raid_member', uuid: '00112233-4455-6677-8899-aabbccddeeff' })
    }
    const image = Buffer.alloc(mebibyte)
    image.set(raidSuperblock('1.0', mebibyte).bytes, 4096)
    expect(probe(whole(image), 512)).toBeUndefined()
    const { offset, bytes } = raidSuperblock('0.90', mebibyte)
    image.set(bytes.swap32(), offset)
    expect(probe(whole(image), 512)?.uuid).toBe('00112233-4455-6677-8899-aabbccddeeff')
  })

  test.each([512, 4096])(
    'does not take the content of the last partition for the content of the disk, sectors of %d bytes',
    (sectorSize) => {
      const size = 8 * mebibyte
      const table = newTable({ sectorSize, size, diskGuid: crypto.randomUUID() })
      const { offset, bytes } = raidSuperblock('0.90', size)
      const probed = () => {
        const image = new Uint8Array(size)
        for (const part of writeTable(table, { protective: true }).flat()) image.set(part.bytes, part.offset)
        image.set(bytes, offset)
        return probe(whole(image), sectorSize)?.name
      }
      // The table of an array that lies on the disk ends before the superblock.
      expect(probed()).toBe('linux_raid_member')
      const first = mebibyte / sectorSize
      table.partitions.push({
        index: 1,
        name: 'r-data',
        type: crypto.randomUUID(),
        guid: crypto.randomUUID(),
        first,
        last: offset / sectorSize,
        attributes: 0n,
      })
      expect(probed()).toBe('gpt')
    },
  )

  test('detects an MBR, and does not mistake a boot sector for one', () => {
    const image = new Uint8Array(mebibyte)
    image.set([0x55, 0xaa], 510)
    expect(probe(whole(image), 512)).toBeUndefined()
    image[446 + 4] = 0x83
    expect(probe(whole(image), 512)?.name).toBe('mbr')
    image[446] = 0x31
    expect(probe(whole(image), 512)).toBeUndefined()
  })

  test('reads only what is in memory', () => {
    const bytes = new Uint8Array(100).fill(7)
    const view = viewOf(1000, [
      { offset: 0, bytes },
      { offset: 900, bytes },
    ])
    expect(view.bytes(0, 100)?.length).toBe(100)
    expect(view.bytes(900, 100)?.length).toBe(100)
    for (const [offset, length] of [
      [0, 101],
      [899, 2],
      [950, 51],
      [-1, 2],
      [400, 1],
    ] as const)
      expect(view.bytes(offset, length)).toBeUndefined()
  })
})

test('a swap area has its size in pages, and one that is too small is not created', () => {
  const header = Buffer.from(swapHeader({ size: 10 * mebibyte, uuid: crypto.randomUUID(), label: 's-a' })!)
  expect(header.readUInt32LE(1028)).toBe(2559)
  expect(swapHeader({ size: 4096 * 9, uuid: crypto.randomUUID() })).toBeUndefined()
})
