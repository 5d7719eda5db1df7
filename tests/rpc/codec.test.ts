import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import protobuf from 'protobufjs'
import { decode, encode } from '../../src/rpc/codec.ts'
import { messageType } from '../../src/rpc/schema.ts'
import { ProtoError, Reader, Writer } from '../../src/rpc/wire.ts'
import { anyText } from '../support/any-text.ts'
import { runs } from '../support/runs.ts'

const folder = `${import.meta.dir}/../../proto`
const root = new protobuf.Root()
for (const name of ['any', 'duration', 'empty', 'struct', 'timestamp'])
  root.addJSON(protobuf.common.get(`google/protobuf/${name}.proto`)!.nested!)
for (const file of ['common', 'machine', 'google/rpc/status', 'cosi/resource'])
  protobuf.parse(await Bun.file(`${folder}/${file}.proto`).text(), root)
root.resolveAll()

/** Made once: each prepares tables of its own. */
const anyName = fc.string()
const someText = anyText()

/** Any value for a message, by its description; `depth` keeps recursion short. */
function anyMessage(type: protobuf.Type, depth = 0): fc.Arbitrary<Record<string, unknown>> {
  const oneofs = new Map<string, protobuf.Field[]>()
  const entries = type.fieldsArray.flatMap((field): [string, fc.Arbitrary<unknown>][] => {
    field.resolve()
    if (field.partOf && !field.options?.proto3_optional) {
      oneofs.set(field.partOf.name, [...(oneofs.get(field.partOf.name) ?? []), field])
      return []
    }
    return [[field.name, fc.option(fieldValue(field, depth), { nil: undefined })]]
  })
  const chosen = [...oneofs.values()].map((fields) =>
    fc.oneof(...fields.map((field) => fieldValue(field, depth).map((value) => ({ [field.name]: value })))),
  )
  return fc
    .tuple(fc.record(Object.fromEntries(entries)), ...chosen)
    .map(([plain, ...more]) => Object.assign({}, plain, ...more))
    .map((value) => Object.fromEntries(Object.entries(value).filter(([, content]) => content !== undefined)))
}

function fieldValue(field: protobuf.Field, depth: number): fc.Arbitrary<unknown> {
  const one = scalarValue(field, depth)
  if (field instanceof protobuf.MapField) return fc.dictionary(anyName, one, { maxKeys: 3, noNullPrototype: true })
  return field.repeated ? fc.array(one, { maxLength: 3 }) : one
}

function scalarValue(field: protobuf.Field, depth: number): fc.Arbitrary<unknown> {
  if (field.resolvedType instanceof protobuf.Type) return depth > 3 ? fc.constant({}) : anyMessage(field.resolvedType, depth + 1)
  if (field.resolvedType) return fc.integer({ min: 0, max: 100 })
  const text = field.options?.jstype === 'JS_STRING'
  switch (field.type) {
    case 'string':
      return someText
    case 'bytes':
      return fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))
    case 'bool':
      return fc.boolean()
    case 'double':
    case 'float':
      return fc.double({ noNaN: true }).map((value) => (field.type === 'float' ? Math.fround(value) : value))
    case 'uint64':
      return text ? fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String) : fc.maxSafeNat()
    case 'int64':
      return fc.maxSafeInteger()
    case 'uint32':
    case 'fixed32':
      return fc.nat(0xffff_ffff)
    default:
      return fc.integer()
  }
}

const names = [
  'machine.Event',
  'machine.EtcdMemberListResponse',
  'machine.ServiceListResponse',
  'machine.ImageServiceListResponse',
  'machine.SystemStat',
  'machine.LoadAvgResponse',
  'cosi.resource.WatchResponse',
  'cosi.resource.WatchRequest',
  'google.protobuf.Struct',
  'machine.ImageServicePullResponse',
  'machine.ListRequest',
]

describe('messages', () => {
  for (const name of names) {
    const reference = root.lookupType(name)
    const values = anyMessage(reference)
    test(`${name}is decoded as an independent decoder does`, () => {
      fc.assert(
        fc.property(values, (value) => {
          const bytes = encode(messageType(name), value)
          const again = decode(messageType(name), bytes)
          const theirs = reference.toObject(reference.decode(bytes), { longs: String, bytes: Buffer, defaults: true, oneofs: false })
          expect(comparable(again)).toEqual(comparable(theirs))
          expect(decode(messageType(name), encode(messageType(name), again))).toEqual(again)
        }),
        { numRuns: runs(60) },
      )
    })
    test(`${name}is decoded from any encoder`, () => {
      fc.assert(
        fc.property(values, (value) => {
          const bytes = reference.encode(reference.fromObject(value)).finish()
          expect(comparable(decode(messageType(name), bytes))).toEqual(
            comparable(decode(messageType(name), encode(messageType(name), value))),
          )
        }),
        { numRuns: runs(60) },
      )
    })
  }

  test('any bytes decode or throw a ProtoError, nothing else', () => {
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.uint8Array({ maxLength: 300 }), (name, bytes) => {
        try {
          decode(messageType(name), bytes)
        } catch (error) {
          expect(error).toBeInstanceOf(ProtoError)
        }
      }),
      { numRuns: runs(2000) },
    )
  })

  test('a nested message that occurs twice is merged, which a proxy that appends to it relies on', () => {
    const type = messageType('common.Data')
    const failed = encode(type, { metadata: { error: 'gone', status: { code: 5 } }, bytes: Buffer.from('x') })
    const marked = encode(type, { metadata: { hostname: '10.5.0.2', status: { message: 'not there' } } })
    expect(decode(type, Buffer.concat([failed, marked]))).toEqual({
      metadata: { hostname: '10.5.0.2', error: 'gone', status: { code: 5, message: 'not there', details: [] } },
      bytes: Buffer.from('x'),
    })
  })

  test('nested too deep are refused', () => {
    let bytes: Buffer = Buffer.alloc(0)
    for (let i = 0; i < 200; i++) {
      const writer = new Writer()
      // Value.list_value → ListValue.values, again and again
      writer.tag(i % 2 === 0 ? 1 : 6, 2)
      writer.bytes(bytes)
      bytes = writer.finish()
    }
    expect(() => decode(messageType('google.protobuf.Value'), bytes)).toThrow('messages nested too deep')
  })

  test('a map key "__proto__" is an ordinary key', () => {
    const bytes = encode(messageType('cosi.resource.Metadata'), { labels: Object.fromEntries([['__proto__', 'x']]) })
    const { labels } = decode(messageType('cosi.resource.Metadata'), bytes) as { labels: Record<string, string> }
    expect(Object.keys(labels)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf({})).toBe(Object.prototype)
  })
})

/** The two readers' choices made alike: 64-bit numbers as text, what is absent left out. */
function comparable(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value.toString('hex')
  if (Array.isArray(value)) return value.map(comparable)
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, content]) => content !== null && content !== undefined)
        .map(([key, content]) => [key, comparable(content)]),
    )
  return typeof value === 'number' ? String(value) : value
}

describe('numbers', () => {
  test('of 64 bits round-trip exactly', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        const writer = new Writer()
        writer.varint64(value)
        expect(BigInt.asIntN(64, new Reader(writer.finish()).big())).toBe(value)
      }),
    )
  })

  test('of 53 bits round-trip exactly, negative ones too', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (value) => {
        const writer = new Writer()
        writer.varint64(value)
        expect(new Reader(writer.finish()).signed()).toBe(value)
      }),
    )
  })
})
