import { expect, test } from 'bun:test'
import { Crc32c } from '../../src/wire/crc32c.ts'

const sumOf = (...pieces: Uint8Array[]) => {
  const sum = new Crc32c()
  for (const piece of pieces) sum.update(piece)
  return sum.value
}

test('the checksums of RFC 3720, B.4', () => {
  expect(sumOf(new Uint8Array(32))).toBe(0x8a9136aa)
  expect(sumOf(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43)
  expect(sumOf(Uint8Array.from({ length: 32 }, (_, at) => at))).toBe(0x46dd794e)
  expect(sumOf(Buffer.from('123456789'))).toBe(0xe3069283)
})

test('pieces of any length give the checksum of the whole', () => {
  const whole = Uint8Array.from({ length: 100 }, (_, at) => (at * 37) & 0xff)
  for (let cut = 0; cut <= whole.length; cut++) expect(sumOf(whole.subarray(0, cut), whole.subarray(cut))).toBe(sumOf(whole))
})
