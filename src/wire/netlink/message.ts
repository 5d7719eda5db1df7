/** Messages of netlink(7) and their acknowledgements. */
import { DecodeError } from '../decode-error.ts'
import { AttributeReader } from './attributes.ts'

/** Header flags. */
export const flag = {
  request: 1,
  multi: 2,
  ack: 4,
  echo: 8,
  dumpInterrupted: 0x10,
  dumpFiltered: 0x20,
  replace: 0x100,
  excl: 0x200,
  create: 0x400,
  append: 0x800,
  /** Root and match: dumps the whole table. */
  dump: 0x300,
} as const

/** Message types shared by all protocols. */
export const control = { noop: 1, error: 2, done: 3, overrun: 4 } as const

/** One message without its header. */
export interface NetlinkMessage {
  type: number
  flags: number
  sequence: number
  port: number
  body: Uint8Array
}

/** The kernel's response: 0, or an error, with a message where it has one. */
export interface Acknowledgement {
  /** Positive errno, 0 for success. */
  errno: number
  message?: string | undefined
  /** Offset of the offending attribute in the request. */
  offset?: number | undefined
}

const headerLength = 16
const maxMessages = 65536

/** Splits the result of one read into messages. */
export function readMessages(bytes: Uint8Array): NetlinkMessage[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const found: NetlinkMessage[] = []
  let at = 0
  while (at < bytes.length) {
    const left = bytes.length - at
    const length = left >= headerLength ? view.getUint32(at, true) : 0
    if (length < headerLength || length > left) throw new DecodeError('netlink message', at, `length ${length} of ${left} bytes`)
    if (found.length === maxMessages) throw new DecodeError('netlink message', at, 'too many')
    found.push({
      type: view.getUint16(at + 4, true),
      flags: view.getUint16(at + 6, true),
      sequence: view.getUint32(at + 8, true),
      port: view.getUint32(at + 12, true),
      body: bytes.subarray(at + headerLength, at + length),
    })
    at += (length + 3) & ~3
  }
  return found
}

/** Encodes one message. */
export function writeMessage({ type, flags, sequence, port = 0, body }: Omit<NetlinkMessage, 'port'> & { port?: number }): Uint8Array {
  const bytes = Buffer.alloc(headerLength + body.length)
  bytes.writeUInt32LE(bytes.length, 0)
  bytes.writeUInt16LE(type, 4)
  bytes.writeUInt16LE(flags, 6)
  bytes.writeUInt32LE(sequence, 8)
  bytes.writeUInt32LE(port, 12)
  bytes.set(body, headerLength)
  return bytes
}

/** Decodes the body of an error message (an acknowledgement when errno is 0) or of the end of a dump. */
export function readAcknowledgement({ type, flags, body }: NetlinkMessage): Acknowledgement {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  if (body.length < 4) {
    if (type === control.done) return { errno: 0 }
    throw new DecodeError('netlink error', 0, `${body.length} bytes`)
  }
  const errno = -view.getInt32(0, true) || 0
  const extended = (flags & 0x200) !== 0 // NLM_F_ACK_TLVS
  if (!extended) return { errno }
  let at = 4
  if (type === control.error) {
    if (body.length < 4 + headerLength) throw new DecodeError('netlink error', 4, 'no request header')
    const capped = (flags & 0x100) !== 0 // NLM_F_CAPPED
    at += capped ? headerLength : (view.getUint32(4, true) + 3) & ~3
    if (at > body.length) throw new DecodeError('netlink error', 4, 'the request does not fit')
  }
  const attributes = new AttributeReader(body.subarray(at), 'netlink error', at)
  return { errno, message: attributes.text(1), offset: attributes.u32(2) } // NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS
}
