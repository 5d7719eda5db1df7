import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ConnectionError } from '../../../src/wire/http2/error.ts'
import { HpackDecoder, HpackEncoder } from '../../../src/wire/http2/hpack.ts'
import { decodeHuffman } from '../../../src/wire/http2/huffman.ts'
import { runs } from '../../support/runs.ts'

type Pair = [name: string, value: string]

function read(decoder: HpackDecoder, block: Buffer): Pair[] {
  const pairs: Pair[] = []
  decoder.decode(block, (name, value) => pairs.push([name, value]))
  return pairs
}

const bytes = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex')

// RFC 7541, appendix C.4 and C.6: three requests, three responses through a table of 256 bytes.
const requests: [string, Pair[]][] = [
  [
    '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
    [
      [':method', 'GET'],
      [':scheme', 'http'],
      [':path', '/'],
      [':authority', 'www.example.com'],
    ],
  ],
  [
    '8286 84be 5886 a8eb 1064 9cbf',
    [
      [':method', 'GET'],
      [':scheme', 'http'],
      [':path', '/'],
      [':authority', 'www.example.com'],
      ['cache-control', 'no-cache'],
    ],
  ],
  [
    '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
    [
      [':method', 'GET'],
      [':scheme', 'https'],
      [':path', '/index.html'],
      [':authority', 'www.example.com'],
      ['custom-key', 'custom-value'],
    ],
  ],
]
const date = 'Mon, 21 Oct 2013 20:13:21 GMT'
const responses: [string, Pair[]][] = [
  [
    '3fe1 0148 8264 0258 85ae c377 1a4b 6196 d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff 6e91 9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3',
    [
      [':status', '302'],
      ['cache-control', 'private'],
      ['date', date],
      ['location', 'https://www.example.com'],
    ],
  ],
  [
    '4883 640e ffc1 c0bf',
    [
      [':status', '307'],
      ['cache-control', 'private'],
      ['date', date],
      ['location', 'https://www.example.com'],
    ],
  ],
]

describe('a header block', () => {
  test.each([
    ['requests', requests],
    ['responses, whose table is small', responses],
  ])('of the standard is read: %s', (_, blocks) => {
    const decoder = new HpackDecoder()
    for (const [hex, pairs] of blocks) expect(read(decoder, bytes(hex))).toEqual(pairs)
  })

  const name = fc.oneof(
    fc.constantFrom(':path', ':status', 'content-type', 'grpc-status', 'token', 'x-a', 'x-b'),
    fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/),
  )
  const value = fc.oneof(
    fc.constantFrom('0', '200', 'application/grpc', ''),
    fc.stringMatching(/^[ -~]{0,300}$/),
    fc.string({ minLength: 0, maxLength: 5000, unit: fc.constantFrom('a', 'b') }),
  )

  test('round-trips, however the table changes', () => {
    const block = fc.array(fc.tuple(name, fc.oneof(value, fc.array(value, { minLength: 1, maxLength: 3 }))), { maxLength: 12 })
    const limit = fc.option(fc.constantFrom(0, 64, 500, 4096, 100_000), { nil: undefined })
    fc.assert(
      fc.property(fc.array(fc.tuple(block, limit), { maxLength: 20 }), (blocks) => {
        const [encoder, decoder] = [new HpackEncoder(), new HpackDecoder()]
        for (const [pairs, tableLimit] of blocks) {
          if (tableLimit !== undefined) encoder.tableLimit = tableLimit
          const headers = Object.fromEntries(pairs)
          const expected = Object.entries(headers).flatMap(([key, texts]) => [texts].flat().map((text): Pair => [key, text]))
          expect(read(decoder, Buffer.from(encoder.encode(headers)))).toEqual(expected)
        }
      }),
      { numRuns: runs(300), seed: 1 },
    )
  })

  test('that repeats headers is short, and never stores a secret', () => {
    const encoder = new HpackEncoder()
    const headers = { ':path': '/machine.MachineService/Version', 'content-type': 'application/grpc', token: 'abc' }
    const first = encoder.encode(headers).length
    const second = encoder.encode(headers)
    expect(second.length).toBeLessThan(first)
    expect(second.includes('abc')).toBe(true)
    expect([...second].filter((byte) => (byte & 0xf0) === 0x10)).not.toBeEmpty()
  })

  test('of any bytes is decoded or refused, with memory bounded by the table and the block', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 10 }), (blocks) => {
        const decoder = new HpackDecoder()
        try {
          for (const block of blocks)
            for (const [key, text] of read(decoder, Buffer.from(block))) expect(key.length + text.length).toBeLessThan(4096 + 400)
        } catch (error) {
          expect(error).toBeInstanceOf(ConnectionError)
          expect((error as ConnectionError).code).toBe('COMPRESSION_ERROR')
        }
      }),
      { numRuns: runs(3000), seed: 1 },
    )
  })

  test.each([
    ['an index that nobody gave', '80'],
    ['an index beyond the table', 'be'],
    ['a number that is cut off', 'ff'],
    ['a number without an end', 'ff ff ff ff ff ff ff ff ff ff 0f'],
    ['a text that is cut off', '40 05 61 62'],
    ['a larger table than was allowed', '3f e2 1f'],
    ['another table size in its middle', '82 20'],
    ['no text where one belongs', '40'],
  ])('with %s is refused', (_, hex) => {
    expect(() => read(new HpackDecoder(), bytes(hex))).toThrow(ConnectionError)
  })
})

describe('Huffman’s code', () => {
  test.each([
    ['f1e3 c2e5 f23a 6ba0 ab90 f4ff', 'www.example.com'],
    ['aec3 771a 4b', 'private'],
    ['', ''],
    ['f8', '&'],
    ['ff c7', '\0'],
  ])('%s', (hex, text) => {
    expect(decodeHuffman(bytes(hex))).toBe(text)
  })

  test.each([
    ['padding of a whole byte', 'f8 ff'],
    ['padding that is not all ones', '1c 64 00'],
    ['the end of a string inside one', 'ff ff ff ff'],
  ])('is refused with %s', (_, hex) => {
    expect(() => decodeHuffman(bytes(hex))).toThrow(ConnectionError)
  })
})
