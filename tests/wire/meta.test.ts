import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { DecodeError } from '../../src/wire/decode-error.ts'
import { advSize, metaCapacity, metaCopySize, readAdv, readMeta, writeAdv, writeMeta } from '../../src/wire/meta.ts'
import { runs } from '../support/runs.ts'

const bytes = (text: string) => new Uint8Array(Buffer.from(text))

test('a copy has magics at both ends, values between, and a checksum', () => {
  const copy = Buffer.from(writeMeta(new Map([[0x0a, bytes('net')]])))
  expect(copy.length).toBe(262144)
  expect(copy.toString('hex', 0, 19)).toBe('5a4b3c2d0000000a000000036e657400000000')
  expect(copy.readUInt32BE(metaCopySize - 4)).toBe(0xa5b4c3d2)
  const summed = Buffer.from(copy)
  summed.fill(0, metaCopySize - 36, metaCopySize - 4)
  expect(copy.subarray(metaCopySize - 36, metaCopySize - 4)).toEqual(createHash('sha256').update(summed).digest())
})

test('values round-trip, also the largest that fits, and one byte more is refused', () => {
  const full = new Map([[6, new Uint8Array(metaCapacity - 8).fill(7)]])
  expect(readMeta(writeMeta(full))).toEqual(full)
  expect(() => writeMeta(new Map([[6, new Uint8Array(metaCapacity - 7)]]))).toThrow(DecodeError)
})

const values = fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 255 }), fc.uint8Array({ maxLength: 40 })), {
  selector: ([tag]) => tag,
  maxLength: 9,
})

test('any values round-trip, and a copy with any byte changed is refused or equal', () => {
  fc.assert(
    fc.property(values, fc.nat(metaCopySize - 1), fc.integer({ min: 1, max: 255 }), (list, place, change) => {
      const copy = writeMeta(new Map(list))
      expect(readMeta(copy)).toEqual(new Map([...list].sort(([a], [b]) => a - b)))
      copy[place]! ^= change
      expect(() => readMeta(copy)).toThrow(DecodeError)
    }),
    { numRuns: runs(25) },
  )
})

test('the legacy area holds small values, twice 512 bytes', () => {
  fc.assert(
    fc.property(values, fc.nat(advSize - 1), fc.integer({ min: 1, max: 255 }), (list, place, change) => {
      const copy = writeAdv(new Map(list))
      expect(copy.length).toBe(advSize)
      expect(readAdv(copy)).toEqual(new Map([...list].sort(([a], [b]) => a - b)))
      copy[place]! ^= change
      expect(() => readAdv(copy)).toThrow(DecodeError)
    }),
  )
  expect(() => writeAdv(new Map([[1, new Uint8Array(256)]]))).toThrow(DecodeError)
  expect(() =>
    writeAdv(
      new Map([
        [1, new Uint8Array(250)],
        [2, new Uint8Array(250)],
      ]),
    ),
  ).toThrow(DecodeError)
})

test('anything but META is refused: nothing, zeros, noise, a part', () => {
  for (const wrong of [new Uint8Array(), new Uint8Array(metaCopySize), writeMeta(new Map()).slice(0, 1000)])
    expect(() => readMeta(wrong)).toThrow(DecodeError)
  for (const wrong of [new Uint8Array(), new Uint8Array(advSize)]) expect(() => readAdv(wrong)).toThrow(DecodeError)
})
