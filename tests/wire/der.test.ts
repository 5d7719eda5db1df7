import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../src/wire/decode-error.ts'
import { DerReader, element, integer, oid, sequence, tags, text, time } from '../../src/wire/der.ts'
import { decodePem, encodePem } from '../../src/wire/pem.ts'
import { decodeCertificate } from '../../src/wire/x509/certificate.ts'
import { decodeRequest } from '../../src/wire/x509/request.ts'
import { runs } from '../support/runs.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

test('numbers, identifiers, strings and times are written as X.690 and RFC 5280 show them', () => {
  expect(hex(integer(0))).toBe('020100')
  expect(hex(integer(128))).toBe('02020080')
  expect(hex(integer(Buffer.from('00ff', 'hex')))).toBe('020200ff')
  expect(hex(oid('1.2.840.113549'))).toBe('06062a864886f70d')
  expect(text('a@b')[0]).toBe(tags.utf8String)
  expect(text('system:masters')[0]).toBe(tags.printableString)
  expect(Buffer.from(time(new Date('2049-12-31T23:59:59Z'))).toString('latin1', 2)).toBe('491231235959Z')
  expect(Buffer.from(time(new Date('2050-01-01T00:00:00Z'))).toString('latin1', 2)).toBe('20500101000000Z')
})

test('every value round-trips', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70_000, size: 'max' }), (bytes) => {
      expect(new DerReader('test', element(tags.octetString, bytes)).next().content).toEqual(Buffer.from(bytes))
    }),
    { numRuns: runs(30) },
  )
  fc.assert(
    fc.property(
      fc.tuple(fc.integer({ min: 0, max: 1 }), fc.integer({ min: 0, max: 39 }), fc.array(fc.nat(2 ** 40), { maxLength: 6 })),
      ([a, b, rest]) => {
        const dotted = [a, b, ...rest].join('.')
        expect(new DerReader('test', oid(dotted)).oid()).toBe(dotted)
      },
    ),
  )
})

test.each([
  ['nothing', '', 'ends too early'],
  ['a tag alone', '30', 'ends inside a length'],
  ['indefinite length', '3080', 'indefinite length'],
  ['a length that is too long', '300301', 'exceeds the input'],
  ['a length of five bytes', '30850000000001', 'more than four'],
  ['a length not in its shortest form', '30810100', 'shortest form'],
])('%s is refused', (_, input, message) => {
  expect(() => new DerReader('test', Buffer.from(input, 'hex')).next()).toThrow(message)
})

test('arbitrary bytes never make the readers throw anything but DecodeError', () => {
  const onlyDecodeError = (read: () => unknown) => {
    try {
      read()
    } catch (error) {
      expect(error).toBeInstanceOf(DecodeError)
    }
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      for (const decode of [decodeCertificate, decodeRequest]) {
        onlyDecodeError(() => decode(bytes))
        onlyDecodeError(() => decode(sequence(sequence(bytes))))
      }
      onlyDecodeError(() => decodePem(`-----BEGIN ${Buffer.from(bytes).toString('latin1')}`))
    }),
    { numRuns: runs(300) },
  )
})

test('PEM keeps bytes and labels, skips what is between blocks and refuses truncated blocks', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (der) => {
      expect(decodePem(`some text\n${encodePem('X Y', der)}more\n${encodePem('Z', der)}`)).toEqual([
        { label: 'X Y', der },
        { label: 'Z', der },
      ])
    }),
  )
  expect(() => decodePem('-----BEGIN X-----\nAAAA\n')).toThrow('no "-----END X-----"')
  expect(() => decodePem('-----BEGIN X-----\nA*AA\n-----END X-----')).toThrow('not base64')
  expect(decodePem('')).toEqual([])
})
