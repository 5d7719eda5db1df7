/**
 * Messages as plain objects. Field names are camelCase; enums are numbers; 64-bit integers are numbers, or decimal strings
 * where the .proto file has `jstype = JS_STRING`; bytes are Buffers. A decoded object has every scalar, list and map filled
 * in; messages, `optional` fields and members of a oneof are present only when they were sent. An encoded message omits
 * fields that equal their default, as in proto3.
 */
import { type FieldShape, type MessageType, messageType } from './schema.ts'
import { RpcError } from './status.ts'
import { ProtoError, Reader, Writer, wireType } from './wire.ts'

/** A message as a plain object; see messages.ts for the types of each. */
export type Plain = Record<string, unknown>

interface Scalar {
  readonly wire: number
  readonly zero: unknown
  write(writer: Writer, value: never): void
  read(reader: Reader): unknown
}

type Field = {
  readonly id: number
  readonly name: string
  readonly repeated: boolean
  /** The type of a map's keys. */
  readonly map?: Scalar
  /** Explicit presence: written even when it equals the default. */
  readonly explicit: boolean
} & ({ readonly scalar: Scalar; readonly message?: undefined } | { readonly scalar?: undefined; readonly message: MessageType })

interface Plan {
  readonly fields: readonly Field[]
  readonly byId: ReadonlyMap<number, Field>
}

const maxDepth = 64
const plans = new WeakMap<MessageType, Plan>()

/** Encodes a message, after `reserved` free bytes. */
export function encode(type: MessageType, value: object, reserved = 0): Buffer {
  const writer = new Writer(reserved)
  writeMessage(writer, type, value as Plain)
  return writer.finish()
}

/** Default limit of fields, including nested messages and items of packed lists: two bytes can become an object. */
const defaultFields = 1_000_000

/** How many fields a message may have, and how many are left. */
export interface FieldBudget {
  left: number
  readonly most: number
}

/** Decodes a message. Throws ProtoError, and RpcError ResourceExhausted when it has more fields than the budget. */
export function decode(type: MessageType, bytes: Uint8Array, budget: FieldBudget = { left: defaultFields, most: defaultFields }): Plain {
  return readMessage(new Reader(bytes), type, 0, budget)
}

function spend(budget: FieldBudget): void {
  if (--budget.left < 0) throw new RpcError('ResourceExhausted', `the message has more than ${budget.most} fields`)
}

function planOf(type: MessageType): Plan {
  let plan = plans.get(type)
  if (!plan) {
    const fields = type.fields.map(fieldOf)
    plan = { fields, byId: new Map(fields.map((field) => [field.id, field])) }
    plans.set(type, plan)
  }
  return plan
}

function fieldOf({ id, name, type, isMessage, repeated, mapKey, explicit, asText }: FieldShape): Field {
  return {
    id,
    name,
    repeated,
    explicit,
    ...(mapKey && { map: scalarOf(mapKey, false) }),
    ...(isMessage ? { message: messageType(type) } : { scalar: scalarOf(type, asText) }),
  }
}

function writeMessage(writer: Writer, type: MessageType, value: Plain): void {
  for (const field of planOf(type).fields) {
    const content = value[field.name]
    if (content === undefined || content === null) continue
    if (field.map) writeMap(writer, field, field.map, content as Plain)
    else if (field.repeated) writeList(writer, field, content as readonly unknown[])
    else if (field.explicit || field.message || !isZero(field.scalar, content)) writeOne(writer, field.id, field, content)
  }
}

function writeOne(writer: Writer, id: number, { message, scalar }: Field, value: unknown): void {
  if (message) {
    writer.tag(id, wireType.bytes)
    writer.delimited(() => writeMessage(writer, message, value as Plain))
  } else {
    writer.tag(id, scalar.wire)
    scalar.write(writer, value as never)
  }
}

function writeList(writer: Writer, field: Field, values: readonly unknown[]): void {
  if (values.length === 0) return
  const { scalar } = field
  if (!scalar || scalar.wire === wireType.bytes) {
    for (const value of values) writeOne(writer, field.id, field, value)
    return
  }
  writer.tag(field.id, wireType.bytes)
  writer.delimited(() => {
    for (const value of values) scalar.write(writer, value as never)
  })
}

function writeMap(writer: Writer, field: Field, keys: Scalar, entries: Plain): void {
  for (const [key, value] of Object.entries(entries)) {
    writer.tag(field.id, wireType.bytes)
    writer.delimited(() => {
      writer.tag(1, keys.wire)
      keys.write(writer, (keys.zero === '' ? key : Number(key)) as never)
      writeOne(writer, 2, field, value)
    })
  }
}

/** Reads a message; a field that occurs twice is merged, as the wire format requires. */
function readMessage(reader: Reader, type: MessageType, depth: number, budget: FieldBudget, before?: Plain): Plain {
  if (depth > maxDepth) throw new ProtoError('messages nested too deep', reader.offset)
  const plan = planOf(type)
  const value: Plain = before ?? {}
  for (const field of before ? [] : plan.fields) {
    if (field.map) value[field.name] = {}
    else if (field.repeated) value[field.name] = []
    else if (field.scalar && !field.explicit) value[field.name] = field.scalar.zero
  }
  while (!reader.done) {
    spend(budget)
    const tag = reader.tag()
    const field = plan.byId.get(tag.field)
    if (!field) reader.skip(tag.type)
    else if (field.map) readEntry(reader, tag.type, field, field.map, value[field.name] as Plain, depth, budget)
    else if (field.repeated) readElement(reader, tag.type, field, value[field.name] as unknown[], depth, budget)
    else value[field.name] = readOne(reader, tag.type, field, depth, budget, value[field.name] as Plain | undefined)
  }
  return value
}

function readOne(reader: Reader, wire: number, field: Field, depth: number, budget: FieldBudget, before?: Plain): unknown {
  if (wire !== (field.scalar?.wire ?? wireType.bytes))
    throw new ProtoError(`field "${field.name}" has an unexpected wire type`, reader.offset)
  return field.message ? readMessage(reader.delimited(), field.message, depth + 1, budget, before) : field.scalar.read(reader)
}

function readElement(reader: Reader, wire: number, field: Field, list: unknown[], depth: number, budget: FieldBudget): void {
  if (wire !== wireType.bytes || !field.scalar || field.scalar.wire === wireType.bytes) {
    list.push(readOne(reader, wire, field, depth, budget))
    return
  }
  const packed = reader.delimited()
  while (!packed.done) {
    spend(budget)
    list.push(field.scalar.read(packed))
  }
}

function readEntry(reader: Reader, wire: number, field: Field, keys: Scalar, map: Plain, depth: number, budget: FieldBudget): void {
  if (wire !== wireType.bytes) throw new ProtoError(`field "${field.name}" has an unexpected wire type`, reader.offset)
  const entry = reader.delimited()
  let key: unknown = keys.zero
  let value: unknown = field.message ? undefined : field.scalar.zero
  while (!entry.done) {
    spend(budget)
    const tag = entry.tag()
    if (tag.field === 1 && tag.type === keys.wire) key = keys.read(entry)
    else if (tag.field === 2) value = readOne(entry, tag.type, field, depth, budget)
    else entry.skip(tag.type)
  }
  // defineProperty, so that a key "__proto__" is an ordinary key
  Object.defineProperty(map, String(key), {
    value: value ?? (field.message && readMessage(new Reader(new Uint8Array()), field.message, depth + 1, budget)),
    enumerable: true,
    writable: true,
    configurable: true,
  })
}

function isZero(scalar: Scalar, value: unknown): boolean {
  return scalar.zero instanceof Uint8Array ? (value as Uint8Array).length === 0 : value === scalar.zero || value === 0
}

const none = Buffer.alloc(0)
const varint = wireType.varint

const scalars: Record<string, Scalar> = {
  bool: {
    wire: varint,
    zero: false,
    write: (writer, value: boolean) => writer.varint(value ? 1 : 0),
    read: (reader) => reader.varint() !== 0,
  },
  int32: { wire: varint, zero: 0, write: (writer, value: number) => writer.varint64(value), read: (reader) => reader.int32() },
  int64: { wire: varint, zero: 0, write: (writer, value: number) => writer.varint64(value), read: (reader) => reader.signed() },
  uint32: { wire: varint, zero: 0, write: (writer, value: number) => writer.varint(value), read: (reader) => reader.int32() >>> 0 },
  uint64: { wire: varint, zero: 0, write: (writer, value: number) => writer.varint64(value), read: (reader) => reader.varint() },
  sint32: {
    wire: varint,
    zero: 0,
    write: (writer, value: number) => writer.varint(((value << 1) ^ (value >> 31)) >>> 0),
    read: (reader) => unzigzag(reader.int32()),
  },
  fixed32: { wire: wireType.fixed32, zero: 0, write: (writer, value: number) => writer.fixed32(value), read: (reader) => reader.fixed32() },
  fixed64: {
    wire: wireType.fixed64,
    zero: 0,
    write: (writer, value: number) => writer.fixed64(BigInt(value)),
    read: (reader) => Number(reader.fixed64()),
  },
  float: { wire: wireType.fixed32, zero: 0, write: (writer, value: number) => writer.float(value), read: (reader) => reader.float() },
  double: { wire: wireType.fixed64, zero: 0, write: (writer, value: number) => writer.double(value), read: (reader) => reader.double() },
  string: { wire: wireType.bytes, zero: '', write: (writer, value: string) => writer.string(value), read: (reader) => reader.string() },
  bytes: { wire: wireType.bytes, zero: none, write: (writer, value: Uint8Array) => writer.bytes(value), read: (reader) => reader.bytes() },
}

/** 64 bits as a decimal string, for identifiers that use all of them. */
const exact: Record<string, Scalar> = {
  fixed64: {
    wire: wireType.fixed64,
    zero: '0',
    write: (writer, value: string) => writer.fixed64(BigInt(value)),
    read: (reader) => reader.fixed64().toString(),
  },
  uint64: {
    wire: varint,
    zero: '0',
    write: (writer, value: string) => writer.varint64(BigInt(value)),
    read: (reader) => reader.big().toString(),
  },
  int64: {
    wire: varint,
    zero: '0',
    write: (writer, value: string) => writer.varint64(BigInt(value)),
    read: (reader) => BigInt.asIntN(64, reader.big()).toString(),
  },
}

function scalarOf(type: string, asText: boolean): Scalar {
  const scalar = asText ? exact[type] : scalars[type]
  if (!scalar) throw new Error(`field type "${type}" is not supported${asText ? ' as a string' : ''}`)
  return scalar
}

function unzigzag(value: number): number {
  return (value >>> 1) ^ -(value & 1)
}
