import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { DecodeError } from '../../src/wire/decode-error.ts'
import { readGuid, writeGuid } from '../../src/wire/gpt/guid.ts'
import { freeIndex, gaps, growthLimit } from '../../src/wire/gpt/place.ts'
import { type GptTable, newTable, readTable, type WriteStep, writeTable } from '../../src/wire/gpt/table.ts'
import { partitionTypes } from '../../src/wire/gpt/types.ts'
import { viewOf } from '../../src/wire/probe/view.ts'
import { runs } from '../support/runs.ts'

const mebibyte = 1 << 20
const diskGuid = '11111111-2222-3333-4444-555555555555'

function put(image: Uint8Array, steps: readonly WriteStep[]): Uint8Array {
  for (const { offset, bytes } of steps.flat()) image.set(bytes, offset)
  return image
}

const seen = (image: Uint8Array) => viewOf(image.length, [{ offset: 0, bytes: image }])

function tableWith(count: number, { sectorSize = 512, size = 64 * mebibyte } = {}): GptTable {
  const table = newTable({ sectorSize, size, diskGuid })
  for (let index = 1; index <= count; index++) {
    const first = (index * mebibyte) / sectorSize
    table.partitions.push({
      index,
      type: partitionTypes.linux,
      guid: crypto.randomUUID(),
      first,
      last: first + mebibyte / sectorSize - 1,
      attributes: index === 1 ? 4n : 0n,
      name: `part-${index}`,
    })
  }
  return table
}

test('a GUID is stored half in little and half in big endian', () => {
  const bytes = writeGuid('C12A7328-F81F-11D2-BA4B-00A0C93EC93B')
  expect(Buffer.from(bytes).toString('hex')).toBe('28732ac11ff8d211ba4b00a0c93ec93b')
  expect(readGuid(bytes)).toBe(partitionTypes.efi)
  expect(() => writeGuid('c12a7328')).toThrow(DecodeError)
})

describe.each([512, 4096])('a table on sectors of %i bytes', (sectorSize) => {
  test('round-trips', () => {
    const table = tableWith(5, { sectorSize })
    const image = put(new Uint8Array(64 * mebibyte), writeTable(table, { protective: true }))
    expect(readTable(seen(image), sectorSize)).toEqual({ ...table, entriesAt: 2 })
  })

  test('is read from its backup when the first header is damaged, and reports it', () => {
    const table = tableWith(3, { sectorSize })
    const image = put(new Uint8Array(64 * mebibyte), writeTable(table, { protective: true }))
    image.fill(0, sectorSize, 2 * sectorSize)
    const { damaged, partitions } = readTable(seen(image), sectorSize)
    expect(damaged).toBe('first')
    expect(partitions).toEqual(table.partitions)
  })

  test('is written next to the array in use, and back again', () => {
    const image = put(new Uint8Array(64 * mebibyte), writeTable(tableWith(2, { sectorSize }), { protective: true }))
    const second = readTable(seen(image), sectorSize)
    put(image, writeTable({ ...second, partitions: second.partitions.slice(1) }, { protective: false }))
    const third = readTable(seen(image), sectorSize)
    expect(third.entriesAt).toBe(2 + 16384 / sectorSize)
    expect(third.partitions.map(({ index }) => index)).toEqual([2])
    put(image, writeTable(third, { protective: false }))
    expect(readTable(seen(image), sectorSize).entriesAt).toBe(2)
  })
})

test('a disk that has grown has its backup at the new end after the next write', () => {
  const small = put(new Uint8Array(64 * mebibyte), writeTable(tableWith(1), { protective: true }))
  const image = new Uint8Array(128 * mebibyte)
  image.set(small)
  const table = readTable(seen(image), 512)
  expect(table.damaged).toBe('backup')
  expect(gaps(table).at(-1)!.last).toBeGreaterThan(table.lastUsable)
  expect(growthLimit(table, 1)).toBe(gaps(table).at(-1)!.last)
  put(image, writeTable(table, { protective: false }))
  expect(readTable(seen(image), 512).damaged).toBeUndefined()
})

test('free space begins at mebibytes and ends before the backup', () => {
  const table = tableWith(1)
  table.partitions.push({ ...table.partitions[0]!, index: 3, first: 10 * 2048 + 5, last: 12 * 2048, guid: crypto.randomUUID() })
  expect(gaps(table)).toEqual([
    { first: 2 * 2048, last: 10 * 2048 - 1 },
    { first: 13 * 2048, last: 63 * 2048 - 1 },
  ])
  expect(freeIndex(table)).toBe(2)
  expect(growthLimit(table, 1)).toBe(10 * 2048 - 1)
})

test('partitions that overlap, lie outside or have too long a name are refused', () => {
  const table = tableWith(2)
  table.partitions[1]!.first = table.partitions[0]!.last
  expect(() => writeTable(table, { protective: true })).toThrow('partitions 1 and 2 overlap')
  const long = tableWith(1)
  long.partitions[0]!.name = 'x'.repeat(37)
  expect(() => writeTable(long, { protective: true })).toThrow('longer than 36')
  expect(() => newTable({ sectorSize: 512, size: mebibyte, diskGuid })).toThrow('no room')
})

test('with any byte changed, a table is read unchanged, from its backup, or refused', () => {
  const table = tableWith(4)
  const steps = writeTable(table, { protective: true })
  const image = put(new Uint8Array(64 * mebibyte), steps)
  const places = steps.flat().flatMap(({ offset, bytes }) => [offset, offset + bytes.length - 1])
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom(...places), fc.nat(600), fc.integer({ min: 1, max: 255 })), { maxLength: 6 }),
      (changes) => {
        const flip = () => {
          for (const [place, by, value] of changes) image[Math.min(place + by, image.length - 1)]! ^= value
        }
        flip()
        try {
          expect(readTable(seen(image), 512).partitions).toEqual(table.partitions)
        } catch (error) {
          expect(error).toBeInstanceOf(DecodeError)
        } finally {
          flip()
        }
      },
    ),
    { numRuns: runs(60) },
  )
})
