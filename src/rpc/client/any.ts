import { decode, encode } from '../codec.ts'
import type { google } from '../messages.ts'
import { messageType } from '../schema.ts'

/** Packs a message with the name of its type; `prefix` precedes the name where the receiver expects a URL. */
export function packAny(name: string, message: object, prefix = ''): google.protobuf.Any {
  return { type_url: `${prefix}${name}`, value: encode(messageType(name), message) }
}

/** Unpacks a message of the named type, undefined for another type. Throws ProtoError for bytes that do not decode. */
export function unpackAny<T>(name: string, { type_url: url, value }: google.protobuf.Any): T | undefined {
  return url.slice(url.lastIndexOf('/') + 1) === name ? (decode(messageType(name), value) as T) : undefined
}
