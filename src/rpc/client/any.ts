import { decode, encode } from '../codec.ts'
import type { google } from '../messages.ts'
import { messageType } from '../schema.ts'

/** A message with its type's name; `prefix` comes before the name where the receiver wants a URL. */
export function packAny(name: string, message: object, prefix = ''): google.protobuf.Any {
  return { type_url: `${prefix}${name}`, value: encode(messageType(name), message) }
}

/** The message inside, when its type is the one with this name. Throws ProtoError for bytes that are not that message. */
export function unpackAny<T>(name: string, { type_url: url, value }: google.protobuf.Any): T | undefined {
  return url.slice(url.lastIndexOf('/') + 1) === name ? (decode(messageType(name), value) as T) : undefined
}
