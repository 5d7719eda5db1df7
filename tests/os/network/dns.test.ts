import { expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import * as fc from 'fast-check'
import {
  aged,
  answerAddresses,
  answerWith,
  askedFor,
  payloadLimit,
  readLifetime,
  readQuestion,
  truncated,
} from '../../../src/os/network/dns/message.ts'
import { Resolver } from '../../../src/os/network/dns/resolver.ts'
import { DecodeError } from '../../../src/wire/decode-error.ts'

/** A query for the A record of example.com with an OPT record of 1232 bytes, as dig sends it. */
const query = Buffer.from(
  `12340100000100000000000107${Buffer.from('example').toString('hex')}03636f6d000001000100002904d0000000000000`,
  'hex',
)
/** An answer with one A record that may be kept for 60 seconds. */
const answer = Buffer.from(
  `12348180000100010000000007${Buffer.from('example').toString('hex')}03636f6d0000010001c00c000100010000003c00045db8d822`,
  'hex',
)

test('a question is equal to the same question in other letters', () => {
  const loud = Buffer.from(query)
  loud.write('EXAMPLE', 13)
  expect(readQuestion(loud).key).toBe(readQuestion(query).key)
  expect(readQuestion(query)).toMatchObject({ id: 0x1234, end: 29 })
})

test('an answer is kept as long as its shortest record says, and grows old', () => {
  expect(readLifetime(answer)).toBe(60)
  const old = aged(answer, 7, 20)
  expect(old.readUInt16BE(0)).toBe(7)
  expect(readLifetime(old)).toBe(40)
})

test('what the asker can take is what its OPT record says', () => {
  expect(payloadLimit(query)).toBe(1232)
  expect(truncated(answer).readUInt8(2) & 2).toBe(2)
  expect(answerWith(query, 2).readUInt8(3) & 15).toBe(2)
})

test('no message makes the parser do more than refuse', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 80 }),
        fc.nat(answer.length).map((end) => Uint8Array.from(answer.subarray(0, end))),
      ),
      (bytes) => {
        for (const parse of [readQuestion, readLifetime, payloadLimit, askedFor])
          try {
            parse(bytes)
          } catch (error) {
            if (!(error instanceof DecodeError) && !(error instanceof RangeError)) throw error
          }
      },
    ),
  )
})

test('an unanswerable query gets a code, never silence', async () => {
  const resolver = new Resolver()
  expect((await resolver.answer(Buffer.from('junk'))).readUInt8(3) & 15).toBe(1)
  expect((await resolver.answer(query)).readUInt8(3) & 15).toBe(2) // there is no server to ask
})

test('names that are known here are answered here, for every kind of address', async () => {
  expect(askedFor(query)).toEqual({ name: 'example.com', type: 1, class: 1 })
  expect(readLifetime(answerAddresses(query, [Uint8Array.of(10, 0, 0, 5)], 10))).toBe(10)
  const resolver = new Resolver()
  resolver.know(new Map([['example.com', [Uint8Array.of(10, 0, 0, 5)]]]))
  const reply = await resolver.answer(query)
  expect([reply.readUInt16BE(6), ...reply.subarray(-4)]).toEqual([1, 10, 0, 0, 5])
  const six = Buffer.from(query)
  six.writeUInt16BE(28, 25)
  expect((await resolver.answer(six)).readUInt16BE(6)).toBe(0)
  resolver.know(new Map())
  expect((await resolver.answer(query)).readUInt8(3) & 15).toBe(2)
})

test('the resolver answers on its address over UDP', async () => {
  const resolver = new Resolver()
  const port = await freePort()
  await resolver.listen([`127.0.0.1:${port}`])
  const socket = createSocket('udp4')
  const reply = new Promise<Buffer>((resolve) => socket.once('message', resolve))
  socket.send(query, port, '127.0.0.1')
  expect((await reply).readUInt16BE(0)).toBe(0x1234)
  socket.close()
  await resolver.listen([])
})

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1', () => {
      const { port } = socket.address()
      socket.close(() => resolve(port))
    })
  })
}
