import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { Dhcp6Meaning, dhcp6Option, readDhcp6, writeAssociation, writeDhcp6, writeOption } from '../../../src/wire/dhcp/dhcp6.ts'
import { parseIp } from '../../../src/wire/ip.ts'

const address = (text: string, preferred: number, valid: number) => {
  const life = Buffer.alloc(8)
  life.writeUInt32BE(preferred, 0)
  life.writeUInt32BE(valid, 4)
  return writeOption(dhcp6Option.iaAddress, Buffer.concat([parseIp(text)!, life]))
}

test('a message round-trips', () => {
  fc.assert(
    fc.property(
      fc.nat(255),
      fc.nat(0xffffff),
      fc.array(fc.record({ number: fc.nat(0xffff), value: fc.uint8Array({ maxLength: 100 }) }), { maxLength: 20 }),
      (type, transaction, options) => {
        const read = readDhcp6(writeDhcp6({ type, transaction, options }))
        expect(read).toMatchObject({ type, transaction })
        expect(read.options.map(({ number, value }) => [number, ...value])).toEqual(options.map(({ number, value }) => [number, ...value]))
      },
    ),
  )
})

test('other bytes are refused, whatever their lengths', () => {
  const good = writeDhcp6({ type: 7, transaction: 5, options: [{ number: dhcp6Option.iaNa, value: writeAssociation(1, ['fd00::1']) }] })
  for (const length of [0, 1, 2, 3, 5, 6, 7, 8, 20, good.length - 1]) expect(() => readDhcp6(good.subarray(0, length))).toThrow(DecodeError)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ maxLength: 100 }), (bytes, inner) => {
      try {
        const options = [...readDhcp6(bytes).options, ...Object.values(dhcp6Option).map((number) => ({ number, value: inner }))]
        const meaning = new Dhcp6Meaning({ type: 7, transaction: 1, options })
        void [meaning.association(0), meaning.nameServers, meaning.search, meaning.timeServers, meaning.status, meaning.preference]
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError)
      }
    }),
  )
  const flood = Buffer.concat(Array.from({ length: 300 }, () => writeOption(99, new Uint8Array())))
  expect(() => readDhcp6(Buffer.concat([Buffer.from([7, 0, 0, 1]), flood]))).toThrow('too many')
})

test('an association is found by its id, invalid lifetimes are skipped', () => {
  const head = Buffer.alloc(12)
  head.writeUInt32BE(9, 0)
  head.writeUInt32BE(100, 4)
  head.writeUInt32BE(0xffffffff, 8)
  const value = Buffer.concat([head, address('fd00::1', 10, 20), address('fd00::2', 30, 20), address('fd00::3', 0xffffffff, 0xffffffff)])
  const meaning = new Dhcp6Meaning({ type: 7, transaction: 1, options: [{ number: dhcp6Option.iaNa, value }] })
  expect(meaning.association(8)).toBeUndefined()
  expect(meaning.association(9)).toEqual({
    id: 9,
    t1: 100,
    t2: Number.POSITIVE_INFINITY,
    addresses: [
      { address: 'fd00::1', preferred: 10, valid: 20 },
      { address: 'fd00::3', preferred: Number.POSITIVE_INFINITY, valid: Number.POSITIVE_INFINITY },
    ],
    status: { code: 0, message: '' },
  })
})
