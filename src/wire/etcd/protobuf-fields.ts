/** The fields of a protobuf message (protobuf.dev/programming-guides/encoding), for the few messages in etcd's own files. */
import { DecodeError } from '../decode-error.ts'

/** A field: a number, or bytes that are valid as long as the message is. */
export interface ProtobufField {
  readonly id: number
  readonly value: bigint | Uint8Array
}

const wireType = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 }

/** Reads the fields in their order. Throws DecodeError for what is not a message. */
export function* readProtobufFields(message: Uint8Array): Generator<ProtobufField, void> {
  const position = { at: 0 }
  while (position.at < message.length) {
    const tag = varint(message, position)
    const id = Number(tag >> 3n)
    const kind = Number(tag & 7n)
    if (id === 0) throw new DecodeError('protobuf field', position.at, 'its number is 0')
    if (kind === wireType.varint) yield { id, value: varint(message, position) }
    else yield { id, value: bytes(message, position, lengthOf(kind, message, position)) }
  }
}

function lengthOf(kind: number, message: Uint8Array, position: { at: number }): number {
  if (kind === wireType.bytes) return Number(varint(message, position))
  if (kind === wireType.fixed64) return 8
  if (kind === wireType.fixed32) return 4
  throw new DecodeError('protobuf field', position.at, `its wire type is ${kind}`)
}

function bytes(message: Uint8Array, position: { at: number }, length: number): Uint8Array {
  const start = position.at
  if (length > message.length - start) throw new DecodeError('protobuf field', start, `${length} bytes do not fit`)
  position.at += length
  return message.subarray(start, position.at)
}

function varint(message: Uint8Array, position: { at: number }): bigint {
  let number = 0n
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const byte = message[position.at]
    if (byte === undefined) throw new DecodeError('protobuf number', position.at, 'it is cut')
    position.at++
    number |= BigInt(byte & 0x7f) << shift
    if (byte < 0x80) return BigInt.asUintN(64, number)
  }
  throw new DecodeError('protobuf number', position.at, 'it has more than 64 bits')
}
