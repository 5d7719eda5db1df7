import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type DbusMessage, maxDbusMessage, readDbusMessage, writeDbusMessage } from '../../../src/wire/dbus/message.ts'
import type { DbusValue } from '../../../src/wire/dbus/values.ts'
import { runs } from '../../support/runs.ts'

const inhibit: DbusMessage = {
  type: 'call',
  serial: 3,
  noReply: false,
  path: '/org/freedesktop/login1',
  interface: 'org.freedesktop.login1.Manager',
  member: 'Inhibit',
  destination: 'org.freedesktop.login1',
  body: ['shutdown', 'kubelet', 'needs time', 'delay'].map((value) => ({ type: 's', value })),
}

/** `Get` of a property as busctl of systemd 252 sends it. */
const captured =
  '6c0100013c000000020000008000000001016f00170000002f6f72672f667265656465736b746f702f6c6f67696e310003017300030000004765740000000000' +
  '020173001f0000006f72672e667265656465736b746f702e444275732e50726f706572746965730006017300160000006f72672e667265656465736b746f702e' +
  '6c6f67696e31000008016700027373001e0000006f72672e667265656465736b746f702e6c6f67696e312e4d616e61676572000013000000496e686962697444' +
  '656c61794d61785553656300'

test('a message is read as it was written, with what follows it left', () => {
  const bytes = Buffer.concat([writeDbusMessage(inhibit), Buffer.from('l')])
  expect(readDbusMessage(bytes)).toEqual({ message: inhibit, length: bytes.length - 1 })
})

test('a big-endian message is read', () => {
  const fields = '0501750000000002' + '08016700017500'
  const bytes = Buffer.from(`42020001${'00000004'}${'00000007'}${'0000000f'}${fields}00${'0000002a'}`, 'hex')
  expect(readDbusMessage(bytes)?.message).toMatchObject({ type: 'return', serial: 7, replySerial: 2, body: [{ type: 'u', value: 42 }] })
})

test('incomplete messages need more bytes', () => {
  const bytes = writeDbusMessage(inhibit)
  for (let length = 0; length < bytes.length; length++) expect(readDbusMessage(bytes.subarray(0, length))).toBeUndefined()
})

test.each([
  ['a byte order that does not exist', { 0: 0x78 }, 'byte order is neither'],
  ['a type that does not exist', { 1: 9 }, 'unknown type'],
  ['another version', { 3: 2 }, 'unknown version'],
  ['more bytes than are accepted', { 5: 0xff }, `at most ${maxDbusMessage} are accepted`],
  ['a serial of 0', { 8: 0 }, 'serial 0'],
  ['a header field of another type', { 18: 0x73 }, 'field "path" has the type "s"'],
])('%s is refused', (_, changes, message) => {
  const bytes = writeDbusMessage(inhibit)
  for (const [at, value] of Object.entries(changes)) bytes[Number(at)] = value
  expect(() => readDbusMessage(bytes)).toThrow(message)
})

test('a body of a type that is not read is known to be there', () => {
  const bytes = writeDbusMessage({ ...inhibit, body: [{ type: 's', value: '' }] })
  bytes.write('a', bytes.indexOf('\x08\x01g\0\x01s\0') + 5)
  expect(readDbusMessage(bytes)?.message.body).toBeUndefined()
})

const value = fc.letrec<{ value: DbusValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({
      type: fc.constantFrom('s' as const, 'o' as const),
      value: fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0')),
    }),
    fc.record({ type: fc.constantFrom('u' as const, 'h' as const), value: fc.nat() }),
    fc.record({ type: fc.constant('y' as const), value: fc.nat(255) }),
    fc.record({ type: fc.constant('n' as const), value: fc.integer({ min: -32768, max: 32767 }) }),
    fc.record({ type: fc.constant('i' as const), value: fc.integer() }),
    fc.record({ type: fc.constant('t' as const), value: fc.bigInt(0n, (1n << 64n) - 1n) }),
    fc.record({ type: fc.constant('x' as const), value: fc.bigInt(-(1n << 63n), (1n << 63n) - 1n) }),
    fc.record({ type: fc.constant('d' as const), value: fc.double({ noNaN: true }) }),
    fc.record({ type: fc.constant('b' as const), value: fc.boolean() }),
    fc.record({ type: fc.constant('v' as const), value: tie('value') }),
  ) as fc.Arbitrary<DbusValue>,
})).value

test('values of every basic type survive', () => {
  fc.assert(
    fc.property(fc.array(value, { maxLength: 6 }), (body) => {
      expect(readDbusMessage(writeDbusMessage({ ...inhibit, body }))?.message.body).toEqual(body)
    }),
    { numRuns: runs(200) },
  )
})

test('a message of another implementation is read', () => {
  const bytes = Buffer.from(captured, 'hex')
  expect(readDbusMessage(bytes)).toEqual({
    length: bytes.length,
    message: {
      ...{ type: 'call', serial: 2, noReply: false, path: '/org/freedesktop/login1', destination: 'org.freedesktop.login1' },
      ...{ interface: 'org.freedesktop.DBus.Properties', member: 'Get' },
      body: ['org.freedesktop.login1.Manager', 'InhibitDelayMaxUSec'].map((value) => ({ type: 's', value })),
    },
  })
})
