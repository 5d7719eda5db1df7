/** Messages of D-Bus (specification, "Message Protocol"). */
import { DecodeError } from '../decode-error.ts'
import { DbusReader, type DbusValue, DbusWriter, isReadable } from './values.ts'

/** Kinds of messages, with the numbers of the protocol. */
export const dbusMessageTypes = { call: 1, return: 2, error: 3, signal: 4 } as const

/** The kind of a message. */
export type DbusMessageType = keyof typeof dbusMessageTypes

/** Header fields, with the numbers of the protocol and their types. */
const fields = {
  path: { code: 1, type: 'o' },
  interface: { code: 2, type: 's' },
  member: { code: 3, type: 's' },
  errorName: { code: 4, type: 's' },
  replySerial: { code: 5, type: 'u' },
  destination: { code: 6, type: 's' },
  sender: { code: 7, type: 's' },
  signature: { code: 8, type: 'g' },
  descriptors: { code: 9, type: 'u' },
} as const

/** The header of a message; absent fields were not sent. */
export interface DbusHeader {
  readonly type: DbusMessageType
  readonly serial: number
  /** The caller does not want a reply. */
  readonly noReply?: boolean
  readonly path?: string
  readonly interface?: string
  readonly member?: string
  readonly errorName?: string
  readonly replySerial?: number
  readonly destination?: string
  readonly sender?: string
  /** Number of descriptors sent beside the message. */
  readonly descriptors?: number
}

/** A message. */
export interface DbusMessage extends DbusHeader {
  /** The values of the body; undefined when it has a type that is not read. */
  readonly body: readonly DbusValue[] | undefined
}

/** The most bytes of a message that is read: many times what a client of the few methods sends. */
export const maxDbusMessage = 16 << 10

const noReplyExpected = 1
const fixedLength = 16
const version = 1

/** Reads the first message in `bytes`; undefined when more bytes are needed. Throws DecodeError. */
export function readDbusMessage(bytes: Uint8Array): { message: DbusMessage; length: number } | undefined {
  if (bytes.length < fixedLength) return undefined
  const order = bytes[0]
  if (order !== 0x6c && order !== 0x42) throw new DecodeError('D-Bus message', 0, 'byte order is neither "l" nor "B"')
  const reader = new DbusReader(bytes, order === 0x6c, 1)
  const type = (Object.keys(dbusMessageTypes) as DbusMessageType[])[reader.u8() - 1]
  const flags = reader.u8()
  if (!type) throw new DecodeError('D-Bus message', 1, 'unknown type')
  if (reader.u8() !== version) throw new DecodeError('D-Bus message', 3, 'unknown version of the protocol')
  const bodyLength = reader.u32()
  const serial = reader.u32()
  const fieldsLength = reader.u32()
  const bodyStart = Math.ceil((fixedLength + fieldsLength) / 8) * 8
  const length = bodyStart + bodyLength
  if (length > maxDbusMessage) throw new DecodeError('D-Bus message', 4, `${length} bytes, at most ${maxDbusMessage} are accepted`)
  if (serial === 0) throw new DecodeError('D-Bus message', 8, 'serial 0')
  if (bytes.length < length) return undefined
  const { signature, ...header } = readFields(bytes.subarray(0, fixedLength + fieldsLength), reader.littleEndian)
  const body = isReadable(signature)
    ? new DbusReader(bytes.subarray(0, length), reader.littleEndian, bodyStart).values(signature)
    : undefined
  return { message: { type, serial, noReply: (flags & noReplyExpected) !== 0, ...header, body }, length }
}

type Fields = Omit<DbusHeader, 'type' | 'serial' | 'noReply'>

/** The array of (code, variant) at the end of `bytes`; fields of other codes are ignored, as the specification demands. */
function readFields(bytes: Uint8Array, littleEndian: boolean): Fields & { signature: string } {
  const reader = new DbusReader(bytes, littleEndian, fixedLength)
  const found: Record<string, string | number> = {}
  while (reader.offset < bytes.length) {
    reader.align(8)
    const at = reader.offset
    const code = reader.u8()
    const { value } = reader.value('v')
    const known = Object.entries(fields).find(([, field]) => field.code === code)
    if (!known) continue
    const [name, { type }] = known
    const inner = value as DbusValue
    if (inner.type !== type) throw new DecodeError('D-Bus header', at, `field "${name}" has the type "${inner.type}"`)
    found[name] = inner.value as string | number
  }
  return { signature: '', ...found }
}

/** Writes a message in little-endian order. */
export function writeDbusMessage({ type, serial, noReply = false, body = [], ...header }: DbusMessage): Buffer {
  const values = new DbusWriter().values(body).bytes()
  const signature = body.map((value) => value.type).join('')
  const present = { ...header, ...(signature && { signature }) } as Record<string, string | number | undefined>
  const written = new DbusWriter()
  for (const [name, { code, type: fieldType }] of Object.entries(fields)) {
    const value = present[name]
    if (value === undefined) continue
    written.align(8).value({ type: 'y', value: code })
    written.value({ type: 'v', value: { type: fieldType, value } as DbusValue })
  }
  const headerFields = written.bytes()
  const start = new DbusWriter()
  for (const byte of [0x6c, dbusMessageTypes[type], noReply ? noReplyExpected : 0, version]) start.value({ type: 'y', value: byte })
  start.u32(values.length).u32(serial).u32(headerFields.length)
  const head = Buffer.concat([start.bytes(), headerFields])
  return Buffer.concat([head, Buffer.alloc((8 - (head.length % 8)) % 8), values])
}
