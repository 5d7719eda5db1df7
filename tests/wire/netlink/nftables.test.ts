import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { attribute, nested, text } from '../../../src/wire/netlink/attributes.ts'
import { readMessages } from '../../../src/wire/netlink/message.ts'
import { changedTable, readFilterChain, readFilterRule, writeTableQuery } from '../../../src/wire/netlink/nftables.ts'
import vectors from './captured/nftables-of-linux-6.18.json'

const head = Buffer.of(1, 0, 0, 0)
const be32 = (type: number, value: number) =>
  attribute(type, Buffer.of(value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255))

describe('nftables', () => {
  test('a chain has its hook, priority and policy', () => {
    const body = Buffer.concat([
      head,
      text(1, 'talos'),
      text(3, 'ingress'),
      nested(4, [be32(1, 1), be32(2, -150)]),
      be32(5, 0),
      text(7, 'filter'),
    ])
    expect(readFilterChain(body)).toEqual({ table: 'talos', name: 'ingress', type: 'filter', hook: 1, priority: -150, policy: 0 })
    expect(readFilterChain(Buffer.concat([head, text(1, 'x'), text(3, 'y')])).hook).toBeUndefined()
  })

  test('a rule is identified by its comment, next to other user data', () => {
    const data = Buffer.concat([Buffer.of(9, 2, 1, 2), Buffer.of(0, 3), Buffer.from('ab\0')])
    expect(readFilterRule(Buffer.concat([head, text(1, 'talos'), text(2, 'ingress'), attribute(7, data)]))).toEqual({
      table: 'talos',
      chain: 'ingress',
      comment: 'ab',
    })
    expect(readFilterRule(Buffer.concat([head, text(1, 'talos'), text(2, 'ingress')])).comment).toBe('')
  })

  test('a change has its table', () => {
    expect(changedTable({ type: 0xa06, body: writeTableQuery('talos') })).toBe('talos')
    expect(changedTable({ type: 0x306, body: writeTableQuery('talos') })).toBeUndefined()
    expect(changedTable({ type: 0xa0f, body: Buffer.of(0, 0, 0, 1) })).toBeUndefined()
  })

  test('any bytes decode or are refused', () => {
    const lying = fc.tuple(fc.constant(head), fc.uint8Array({ maxLength: 120 })).map((parts) => Buffer.concat(parts))
    fc.assert(
      fc.property(fc.oneof(lying, fc.uint8Array({ maxLength: 40 })), (body) => {
        for (const read of [readFilterChain, readFilterRule, (bytes: Uint8Array) => changedTable({ type: 0xa06, body: bytes })])
          try {
            read(body)
          } catch (error) {
            expect(error).toBeInstanceOf(DecodeError)
          }
      }),
    )
  })
})

test('messages of a kernel decode, and are refused when truncated', () => {
  const bytes = (name: keyof typeof vectors) => new Uint8Array(Buffer.from(vectors[name], 'base64'))
  expect(readMessages(bytes('chains')).map(({ body }) => readFilterChain(body))).toEqual([
    { table: 'talos', name: 'ingress', type: 'filter', hook: 1, priority: -150, policy: 0 },
    { table: 'talos', name: 'jumped', type: undefined, hook: undefined, priority: undefined, policy: undefined },
  ])
  const rules = readMessages(bytes('rules'))
  expect(rules.map(({ body }) => readFilterRule(body))).toEqual([
    { table: 'talos', chain: 'ingress', comment: '0123456789ab 1 of 2' },
    { table: 'talos', chain: 'ingress', comment: '0123456789ab 2 of 2' },
    { table: 'talos', chain: 'jumped', comment: '' },
  ])
  const { body } = rules[0]!
  for (let end = 0; end < body.length; end++)
    try {
      readFilterRule(body.subarray(0, end))
    } catch (error) {
      expect(error).toBeInstanceOf(DecodeError)
    }
})
