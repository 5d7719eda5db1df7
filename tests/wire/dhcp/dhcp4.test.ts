import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { newRequest, readDhcp4, writeDhcp4 } from '../../../src/wire/dhcp/dhcp4.ts'
import { Dhcp4Options, dhcp4Option, nameOf, optionAddresses, optionNumber, readSearchList } from '../../../src/wire/dhcp/dhcp4-options.ts'

const mac = '02:00:00:00:00:01'
const options = (entries: [number, Uint8Array][]) => new Dhcp4Options(new Map(entries))

test('a message round-trips, options longer than 255 bytes split into several', () => {
  fc.assert(
    fc.property(
      fc.nat(0xffffffff),
      fc.uniqueArray(
        fc.tuple(
          fc.integer({ min: 1, max: 254 }).filter((n) => n !== dhcp4Option.overload),
          fc.uint8Array({ maxLength: 300 }),
        ),
        {
          selector: ([number]) => number,
          maxLength: 10,
        },
      ),
      (transaction, given) => {
        const message = { ...newRequest(transaction, mac, given), seconds: 7, broadcast: true, clientAddress: '10.0.0.1' }
        const read = readDhcp4(writeDhcp4(message))
        expect({ ...read, options: [...read.options].map(([n, value]) => [n, [...value]]) }).toEqual({
          ...message,
          options: given.map(([n, value]) => [n, [...value]]),
        } as never)
      },
    ),
  )
})

describe('a malformed message is refused', () => {
  const good = Buffer.from(writeDhcp4(newRequest(1, mac, [[dhcp4Option.messageType, optionNumber(1, 1)]])))

  test('truncated anywhere in its fixed part', () => {
    for (let length = 0; length < 240; length++) expect(() => readDhcp4(good.subarray(0, length))).toThrow(DecodeError)
  })

  test('with wrong lengths', () => {
    const lying = Buffer.from(good)
    lying[241] = 200
    expect(() => readDhcp4(lying.subarray(0, 300))).toThrow('option 53 is cut')
    lying[2] = 17
    expect(() => readDhcp4(lying)).toThrow('a hardware address of 17 bytes')
  })

  test('with more options than any server sends', () => {
    const flood = Buffer.concat([
      good.subarray(0, 240),
      ...Array.from({ length: 20 }, () => Buffer.concat([Buffer.from([12, 255]), Buffer.alloc(255)])),
    ])
    expect(() => readDhcp4(flood)).toThrow('more than 4096 bytes')
  })

  test('of any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (tail) => {
        try {
          const { options: read } = readDhcp4(Buffer.concat([good.subarray(0, 240), tail]))
          const meaning = new Dhcp4Options(read)
          void [meaning.routes, meaning.search, meaning.prefixLength, meaning.hostname, meaning.mtu, meaning.leaseTime, meaning.routers]
        } catch (error) {
          expect(error).toBeInstanceOf(DecodeError)
        }
      }),
    )
  })
})

test('options may continue in the name fields', () => {
  const bytes = Buffer.from(writeDhcp4(newRequest(1, mac, [[dhcp4Option.overload, Buffer.from([3])]])))
  bytes.set([dhcp4Option.hostname, 2, 0x61, 0x62, 255], 108)
  bytes.set([dhcp4Option.hostname, 1, 0x63, 255], 44)
  expect(new Dhcp4Options(readDhcp4(bytes).options).hostname).toBe('abc')
})

test('options are decoded, malformed ones ignored', () => {
  const read = options([
    [dhcp4Option.subnetMask, optionAddresses('255.255.240.0')],
    [dhcp4Option.leaseTime, optionNumber(0xffffffff, 4)],
    [dhcp4Option.routes, Buffer.from([0, 10, 0, 0, 1, 24, 192, 0, 2, 0, 0, 0, 0])],
    [dhcp4Option.mtu, optionNumber(1400, 2)],
    [dhcp4Option.hostname, Buffer.from('node-1.\0\0')],
    [dhcp4Option.search, Buffer.from('\x03eng\x05apple\x03com\0\x09marketing\xc0\x04', 'latin1')],
  ])
  expect(read.prefixLength).toBe(20)
  expect(read.leaseTime).toBe(Number.POSITIVE_INFINITY)
  expect(read.routes).toEqual([
    { destination: '', gateway: '10.0.0.1' },
    { destination: '192.0.2.0/24', gateway: '' },
  ])
  expect(read.mtu).toBe(1400)
  expect(read.hostname).toBe('node-1')
  expect(read.search).toEqual(['eng.apple.com', 'marketing.apple.com'])
  const broken = options([
    [dhcp4Option.subnetMask, optionAddresses('255.0.255.0')],
    [dhcp4Option.routes, Buffer.from([24, 10, 0])],
    [dhcp4Option.mtu, optionNumber(67, 2)],
    [dhcp4Option.hostname, Buffer.from('a b;rm')],
    [dhcp4Option.routers, Buffer.from([1, 2, 3])],
  ])
  expect([broken.prefixLength, broken.routes, broken.mtu, broken.hostname, broken.routers]).toEqual([
    undefined,
    undefined,
    undefined,
    '',
    [],
  ])
})

test('names with pointer loops end', () => {
  expect(readSearchList(Buffer.from([0xc0, 0]))).toEqual([])
  expect(readSearchList(Buffer.from([1, 0x61, 0xc0, 0]))).toEqual([])
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => readSearchList(bytes).length <= 64))
})

test('a name is validated in linear time, also an invalid one', () => {
  const names = Array.from({ length: 64 }, (_, index) => `${'a'.repeat(40 + index * 3)}!`)
  const options = new Dhcp4Options(
    new Map([
      [dhcp4Option.hostname, Buffer.from(`${'a.'.repeat(126)}!`)],
      [
        dhcp4Option.search,
        Buffer.concat(names.flatMap((name) => [Buffer.from([Math.min(63, name.length)]), Buffer.from(name.slice(-63)), Buffer.alloc(1)])),
      ],
    ]),
  )
  const before = process.cpuUsage()
  expect([options.hostname, ...options.search]).toEqual([''])
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1000).toBeLessThan(50)
})

test('names are valid when their labels are', () => {
  const expected: Record<string, boolean> = {
    a: true,
    'a.b': true,
    'a.b.': true,
    '_x-1.y': true,
    '': false,
    '.': false,
    '.a': false,
    'a..b': false,
    'a..': false,
    '-a': false,
    'a b': false,
    ä: false,
    ['a'.repeat(63)]: true,
    ['a'.repeat(64)]: false,
    [`${'a'.repeat(63)}.`.repeat(4).slice(0, 253)]: true,
    [`${'a'.repeat(63)}.`.repeat(4).slice(0, 254)]: false,
  }
  for (const [name, valid] of Object.entries(expected)) expect([name, nameOf(name)]).toEqual([name, valid ? name.replace(/\.$/, '') : ''])
})
