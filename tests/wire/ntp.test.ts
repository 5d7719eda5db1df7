import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { clockOffset, ntpDifference, ntpMode, readNtp, toNtpTime, writeNtp } from '../../src/wire/ntp.ts'

const second = 1_000_000_000n

describe('a packet', () => {
  test('round-trips', () => {
    fc.assert(
      fc.property(
        fc.record({
          leap: fc.integer({ min: 0, max: 3 }),
          version: fc.integer({ min: 0, max: 7 }),
          mode: fc.integer({ min: 0, max: 7 }),
          stratum: fc.integer({ min: 0, max: 255 }),
          poll: fc.integer({ min: -128, max: 127 }),
          precision: fc.integer({ min: -128, max: 127 }),
          rootDelay: fc.integer({ min: 0, max: 2 ** 32 - 1 }).map((units) => units / 65_536),
          rootDispersion: fc.integer({ min: 0, max: 2 ** 32 - 1 }).map((units) => units / 65_536),
          reference: fc.uint8Array({ minLength: 4, maxLength: 4 }),
          referenceTime: fc.bigInt(0n, 2n ** 64n - 1n),
          originTime: fc.bigInt(0n, 2n ** 64n - 1n),
          receiveTime: fc.bigInt(0n, 2n ** 64n - 1n),
          transmitTime: fc.bigInt(0n, 2n ** 64n - 1n),
        }),
        (packet) => expect(readNtp(writeNtp(packet))).toEqual(packet),
      ),
    )
  })

  test('of a client begins with 0x23: version 4, mode 3', () => {
    const bytes = writeNtp({ mode: ntpMode.client, transmitTime: 0x0102030405060708n })
    expect(bytes.length).toBe(48)
    expect(bytes[0]).toBe(0x23)
    expect([...bytes.subarray(40)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  test('may be followed by extensions, and may not be too short', () => {
    expect(readNtp(Buffer.concat([writeNtp({ stratum: 2 }), Buffer.alloc(20, 255)])).stratum).toBe(2)
    for (const size of [0, 1, 47])
      expect(() => readNtp(Buffer.alloc(size))).toThrow(`decode NTP packet at ${size}: ${size} bytes, want at least 48`)
  })
})

describe('an NTP time', () => {
  test('counts from 1900, and wraps in February 2036', () => {
    expect(toNtpTime(0n)).toBe(2_208_988_800n << 32n)
    expect(toNtpTime(500_000_000n)).toBe((2_208_988_800n << 32n) | 0x80000000n)
    expect(toNtpTime(BigInt(Date.UTC(2036, 1, 7, 6, 28, 16)) * 1_000_000n)).toBe(0n)
    expect(toNtpTime(BigInt(Date.UTC(1900, 0, 1)) * 1_000_000n)).toBe(0n)
  })

  test('has the correct difference to another, within a nanosecond, also across eras', () => {
    const around = BigInt(Date.UTC(2036, 1, 7)) * 1_000_000n
    fc.assert(
      fc.property(fc.bigInt(0n, 2_000_000n * second), fc.bigInt(0n, 2_000_000n * second), (a, b) => {
        const difference = ntpDifference(toNtpTime(around + a), toNtpTime(around + b)) - (b - a)
        expect(difference >= -2n && difference <= 2n).toBe(true)
      }),
    )
  })

  test('of four gives clock offset and round-trip delay', () => {
    const at = (milliseconds: number) => toNtpTime(1_795_292_960n * second + BigInt(milliseconds) * 1_000_000n)
    // The server is 5 s ahead; 30 ms there, 10 ms inside, 30 ms back.
    const { offset, delay } = clockOffset({ sent: at(0), received: at(5_030), transmitted: at(5_040), arrived: at(70) })
    expect(Math.round(Number(offset) / 1e6)).toBe(5_000)
    expect(Math.round(Number(delay) / 1e6)).toBe(60)
  })
})
