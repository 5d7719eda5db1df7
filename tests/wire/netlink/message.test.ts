import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { control, readAcknowledgement, readMessages, writeMessage } from '../../../src/wire/netlink/message.ts'
import { capturedBytes } from './captured.ts'

describe('netlink messages', () => {
  test('round-trip, several in one read', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            type: fc.nat(0xffff),
            flags: fc.nat(0xffff),
            sequence: fc.nat(0xffffffff),
            port: fc.nat(0xffffffff),
            body: fc.uint8Array({ maxLength: 64 }).map((bytes) => bytes.subarray(0, bytes.length & ~3)),
          }),
        ),
        (messages) => {
          expect(readMessages(new Uint8Array(Buffer.concat(messages.map(writeMessage))))).toEqual(messages)
        },
      ),
    )
  })

  test('are refused when they are truncated or report it', () => {
    const message = writeMessage({ type: 16, flags: 0, sequence: 1, body: new Uint8Array(8) })
    for (let length = 1; length < message.length; length++) expect(() => readMessages(message.subarray(0, length))).toThrow(DecodeError)
    const short = Buffer.from(message)
    short.writeUInt32LE(3, 0)
    expect(() => readMessages(short)).toThrow('decode netlink message at 0: length 3 of 24 bytes')
  })

  test('of any bytes parse or fail with a DecodeError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          for (const message of readMessages(bytes)) if (message.type === control.error) readAcknowledgement(message)
        } catch (error) {
          expect(error).toBeInstanceOf(DecodeError)
        }
      }),
    )
  })
})

describe('acknowledgements', () => {
  const answer = (name: 'refused' | 'agreed') => {
    const [message] = readMessages(capturedBytes(name))
    return message && readAcknowledgement(message)
  }

  test('report success', () => {
    expect(answer('agreed')?.errno).toBe(0)
  })

  test("carry the kernel's own words", () => {
    expect(answer('refused')).toEqual({ errno: 95, message: 'Unknown device type', offset: undefined })
  })

  test('truncated anywhere fail with a DecodeError or lose the message', () => {
    const [whole] = readMessages(capturedBytes('refused'))
    if (!whole) throw new Error('no message')
    for (let length = 0; length < whole.body.length; length++) {
      try {
        readAcknowledgement({ ...whole, body: whole.body.subarray(0, length) })
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError)
      }
    }
  })
})
