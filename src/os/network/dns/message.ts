/**
 * The parts of DNS messages (RFC 1035) that a forwarder needs: the question, the response code and the TTL. Names are
 * compared by their lower-case bytes. Records are walked, never rebuilt.
 */
import { DecodeError } from '../../../wire/decode-error.ts'

/** The longest name (RFC 1035 §2.3.4). */
const longestName = 255

/** Response codes (RFC 1035 §4.1.1). */
export const responseCode = { none: 0, formatError: 1, serverFailure: 2, nameError: 3, notImplemented: 4, refused: 5 } as const

/** A query's question, and the offset where its records begin. */
export interface Question {
  readonly id: number
  /** Name in lower case, type and class, as bytes: equal for equal questions. */
  readonly key: string
  /** Offset behind the question. */
  readonly end: number
  /** RD, AD and CD bits (RFC 4035 3.2): queries that differ in them get different answers. */
  readonly flags: number
}

/** The OPT record of a query (RFC 6891). */
export interface Extension {
  /** The client's UDP payload size. */
  readonly payload: number
  readonly version: number
  /** The flags; the first is DO (DNSSEC records requested). */
  readonly flags: number
}

const header = 12
const queryFlags = 0x0130 // RD, AD, CD
/** The UDP payload size advertised to upstream servers: small enough to avoid fragmentation. */
const ownPayload = 1232

/** Reads the question of a message with exactly one. Throws DecodeError. */
export function readQuestion(message: Uint8Array): Question {
  if (message.length < header) throw new DecodeError('DNS message', 0, `${message.length} bytes`)
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength)
  if (view.getUint16(4) !== 1) throw new DecodeError('DNS message', 4, `${view.getUint16(4)} questions`)
  const end = skipName(message, header) + 4
  if (end > message.length) throw new DecodeError('DNS question', header, 'it is cut off')
  return {
    id: view.getUint16(0),
    // Lower-case the name only: types 65 and 97 differ by what would be letter case.
    key: latin1(message, header, end - 4).toLowerCase() + latin1(message, end - 4, end),
    end,
    flags: view.getUint16(2) & queryFlags,
  }
}

const latin1 = (bytes: Uint8Array, start: number, end: number) => Buffer.from(bytes.subarray(start, end)).toString('latin1')

/** The response code of an answer. */
export function readCode(message: Uint8Array): number {
  return (message[3] ?? 0) & 15
}

/** True if an answer has the TC bit. */
export function isTruncated(message: Uint8Array): boolean {
  return ((message[2] ?? 0) & 2) !== 0
}

/**
 * Seconds an answer may be cached: the smallest TTL of its records; for a negative answer, the limit in the zone's SOA
 * record (RFC 2308); 0 if it must not be cached.
 */
export function readLifetime(message: Uint8Array): number {
  const code = readCode(message)
  let at = readQuestion(message).end
  if (isTruncated(message) || (code !== responseCode.none && code !== responseCode.nameError)) return 0
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength)
  const answers = view.getUint16(6)
  const authority = view.getUint16(8)
  let least = Number.POSITIVE_INFINITY
  for (let index = 0; index < answers + authority; index++) {
    const record = readRecord(message, at)
    at = record.end
    if (index < answers) least = Math.min(least, record.lifetime)
    else if (answers === 0 && record.type === 6 && record.length >= 20)
      least = Math.min(least, record.lifetime, view.getUint32(record.end - 4))
  }
  return Number.isFinite(least) ? least : 0
}

/** Copies a message with another id and every TTL reduced by `age` seconds. The TTL field of the OPT record (RFC 6891) holds flags and is kept. */
export function aged(message: Uint8Array, id: number, age: number): Buffer {
  const copy = Buffer.from(message)
  let at = readQuestion(copy).end
  copy.writeUInt16BE(id, 0)
  const records = copy.readUInt16BE(6) + copy.readUInt16BE(8) + copy.readUInt16BE(10)
  for (let index = 0; index < records; index++) {
    const record = readRecord(copy, at)
    if (record.type !== 41) copy.writeUInt32BE(Math.max(0, record.lifetime - age), record.end - record.length - 6)
    at = record.end
  }
  return copy
}

/** The OPT record of a query, undefined if it has none. */
export function readExtension(query: Uint8Array): Extension | undefined {
  let at = readQuestion(query).end
  const view = new DataView(query.buffer, query.byteOffset, query.byteLength)
  const before = view.getUint16(6) + view.getUint16(8)
  for (let index = 0; index < before + view.getUint16(10); index++) {
    const record = readRecord(query, at)
    if (index >= before && record.type === 41) {
      const field = record.end - record.length - 6 // extended code, version and flags are where other records have their TTL
      return { payload: Math.max(512, record.class), version: view.getUint8(field + 1), flags: view.getUint16(field + 2) }
    }
    at = record.end
  }
  return undefined
}

/**
 * The query to forward to a server: question and DNSSEC bits as received, but with an OPT record of this resolver, since
 * EDNS options are hop-by-hop.
 */
export function queryFor(query: Uint8Array, id: number): Buffer {
  const { end, flags } = readQuestion(query)
  const extension = readExtension(query)
  const forwarded = Buffer.alloc(end + (extension ? 11 : 0))
  forwarded.set(query.subarray(header, end), header)
  forwarded.writeUInt16BE(id, 0)
  forwarded.writeUInt16BE(flags, 2)
  forwarded.writeUInt16BE(1, 4)
  if (extension) {
    forwarded.writeUInt16BE(1, 10)
    forwarded.writeUInt16BE(41, end + 1)
    forwarded.writeUInt16BE(ownPayload, end + 3)
    forwarded.writeUInt16BE(extension.flags & 0x8000, end + 7)
  }
  return forwarded
}

/** The answer to an unsupported EDNS version (RFC 6891 6.1.3): BADVERS (16), whose upper bits are in the OPT record. */
export function answerBadVersion(query: Uint8Array): Buffer {
  const answer = answerWith(query, responseCode.none)
  answer.writeUInt16BE(1, 10)
  const own = Buffer.alloc(11)
  own.writeUInt16BE(41, 1)
  own.writeUInt16BE(ownPayload, 3)
  own.writeUInt8(1, 5)
  return Buffer.concat([answer, own])
}

/** An answer with a response code and no records. */
export function answerWith(query: Uint8Array, code: number): Buffer {
  let end = header
  try {
    end = readQuestion(query).end
  } catch {
    // The question cannot be parsed, so the answer consists of the header only.
  }
  const answer = Buffer.alloc(Math.max(header, end))
  answer.set(query.subarray(0, Math.min(end, query.length)))
  answer.writeUInt8(((query[2] ?? 0) & 0x79) | 0x80, 2) // QR set; opcode and RD copied from the query
  answer.writeUInt8(0x80 | code, 3) // recursion available
  answer.writeUInt16BE(end > header ? 1 : 0, 4)
  answer.fill(0, 6, header)
  return answer
}

/** The question's name in lower case without its final dot, type and class; undefined if the name is not plain text. */
export function readQueryName(message: Uint8Array): { name: string; type: number; class: number } | undefined {
  const { end } = readQuestion(message)
  const labels: string[] = []
  let at = header
  for (let length = message[at]; length; length = message[at]) {
    if (length > 63) return undefined // a compression pointer: never used in a question
    labels.push(Buffer.from(message.subarray(at + 1, at + 1 + length)).toString('latin1'))
    at += length + 1
  }
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength)
  return { name: labels.join('.').toLowerCase(), type: view.getUint16(end - 4), class: view.getUint16(end - 2) }
}

/** An authoritative answer with these addresses (as bytes, all of the queried type) and a TTL in seconds. An empty list gives a NODATA answer. */
export function answerAddresses(query: Uint8Array, addresses: readonly Uint8Array[], lifetime: number): Buffer {
  const head = answerWith(query, responseCode.none)
  head.writeUInt8(head.readUInt8(2) | 4, 2) // authoritative
  head.writeUInt16BE(addresses.length, 6)
  const records = addresses.map((address) => {
    const record = Buffer.alloc(12 + address.length)
    record.writeUInt16BE(0xc000 | header, 0) // compression pointer to the name in the question
    record.writeUInt16BE(address.length === 4 ? 1 : 28, 2)
    record.writeUInt16BE(1, 4)
    record.writeUInt32BE(lifetime, 6)
    record.writeUInt16BE(address.length, 10)
    record.set(address, 12)
    return record
  })
  return Buffer.concat([head, ...records])
}

/** The answer without its records and with the TC bit set. */
export function truncated(answer: Uint8Array): Buffer {
  const short = Buffer.from(answer.subarray(0, readQuestion(answer).end))
  short.writeUInt8(short.readUInt8(2) | 2, 2)
  short.fill(0, 6, header)
  return short
}

interface DnsRecord {
  type: number
  class: number
  lifetime: number
  length: number
  end: number
}

function readRecord(message: Uint8Array, offset: number): DnsRecord {
  const at = skipName(message, offset)
  if (at + 10 > message.length) throw new DecodeError('DNS record', offset, 'it is cut off')
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength)
  const length = view.getUint16(at + 8)
  const end = at + 10 + length
  if (end > message.length) throw new DecodeError('DNS record', offset, `${length} bytes of data are cut off`)
  // RFC 2181 §8: a TTL with the top bit set counts as 0.
  const lifetime = view.getUint32(at + 4)
  return { type: view.getUint16(at), class: view.getUint16(at + 2), lifetime: lifetime > 0x7fff_ffff ? 0 : lifetime, length, end }
}

/** The offset after a name. A compression pointer ends it (RFC 1035 §4.1.4). */
function skipName(message: Uint8Array, offset: number): number {
  let at = offset
  for (let length = message[at]; length !== undefined && at - offset <= longestName; length = message[at]) {
    if (length === 0) return at + 1
    if ((length & 0xc0) === 0xc0) {
      if (at + 2 > message.length) break
      return at + 2
    }
    if ((length & 0xc0) !== 0) throw new DecodeError('DNS name', at, `label of kind ${length >> 6}`)
    at += length + 1
  }
  throw new DecodeError('DNS name', offset, 'it does not end')
}
