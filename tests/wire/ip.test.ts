import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { formatIp, formatMac, parseIp, parseMac } from '../../src/wire/ip.ts'
import { tryPrefix } from '../../src/wire/prefix.ts'

describe('IP addresses', () => {
  test('are written in their canonical form', () => {
    const canonical = (text: string) => {
      const bytes = parseIp(text)
      return bytes && formatIp(bytes)
    }
    expect(canonical('10.0.0.1')).toBe('10.0.0.1')
    expect(canonical('2001:0DB8:0:0:0:0:0:1')).toBe('2001:db8::1')
    expect(canonical('::')).toBe('::')
    expect(canonical('1::')).toBe('1::')
    expect(canonical('0:0:1::')).toBe('0:0:1::')
    expect(canonical('1:0:2:3:4:5:6:7')).toBe('1:0:2:3:4:5:6:7')
    expect(canonical('1:0:0:2:0:0:0:3')).toBe('1:0:0:2::3')
    expect(canonical('::ffff:192.0.2.1')).toBe('::ffff:192.0.2.1')
    expect(canonical('64:ff9b::192.0.2.1')).toBe('64:ff9b::c000:201')
  })

  test.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '256.0.0.1',
    '01.2.3.4',
    '1:2:3',
    '1::2::3',
    ':::',
    '1:2:3:4:5:6:7:8:9',
    '12345::',
    '1.2.3.4::',
    'fe80::1%eth0',
    '::1.2.3',
    '1:2:3:4:5:6:7::8',
  ])('refuse "%s"', (text) => {
    expect(parseIp(text)).toBeUndefined()
  })

  test('round-trip through their string form', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ minLength: 4, maxLength: 4 }), fc.uint8Array({ minLength: 16, maxLength: 16 })), (bytes) => {
        expect(parseIp(formatIp(bytes))).toEqual(bytes)
      }),
    )
  })

  test('never crash the parser', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'0123456789abcdef:./') }), (text) => {
        parseIp(text)
        tryPrefix(text)
        parseMac(text)
      }),
    )
  })
})

test('hardware addresses are colon-separated, of any length', () => {
  expect(formatMac(Uint8Array.of(2, 0, 0xfc, 0, 0, 1))).toBe('02:00:fc:00:00:01')
  expect(parseMac('02-00-FC-00-00-01')).toEqual(Uint8Array.of(2, 0, 0xfc, 0, 0, 1))
  expect(parseMac('02:0:1')).toBeUndefined()
})
