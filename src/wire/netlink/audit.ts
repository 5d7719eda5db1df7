/** Messages of the kernel's audit system over netlink (linux/audit.h). */
import { DecodeError } from '../decode-error.ts'
import { recordTypeName } from './audit-record-types.ts'

/** Types of messages that are no records. */
export const auditMessage = { get: 1000, set: 1001 } as const

/** The state of the audit system. */
export interface AuditStatus {
  enabled: boolean
  /** Process that records are sent to; 0 for none. */
  pid: number
  /** Records that were lost since the kernel started. */
  lost: number
}

/** What to change of it. */
export interface AuditChange {
  enabled?: boolean
  pid?: number
  /** Records a second, beyond which they are dropped. */
  rateLimit?: number
  /** Records that wait in the kernel. */
  backlogLimit?: number
}

/** Bytes of struct audit_status that are read and written here: up to `backlog`. */
const statusLength = 32
const mask = { enabled: 1, pid: 4, rateLimit: 8, backlogLimit: 16 } as const

/** Encodes a change as struct audit_status. */
export function writeAuditChange({ enabled, pid, rateLimit, backlogLimit }: AuditChange): Uint8Array {
  const bytes = Buffer.alloc(statusLength)
  let changed = 0
  const put = (offset: number, bit: number, value: number | undefined) => {
    if (value === undefined) return
    changed |= bit
    bytes.writeUInt32LE(value, offset)
  }
  put(4, mask.enabled, enabled === undefined ? undefined : Number(enabled))
  put(12, mask.pid, pid)
  put(16, mask.rateLimit, rateLimit)
  put(20, mask.backlogLimit, backlogLimit)
  bytes.writeUInt32LE(changed, 0)
  return bytes
}

/** Decodes struct audit_status. Throws DecodeError. */
export function readAuditStatus(body: Uint8Array): AuditStatus {
  if (body.length < statusLength) throw new DecodeError('audit status', 0, `${body.length} bytes`)
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  return { enabled: view.getUint32(4, true) !== 0, pid: view.getUint32(12, true), lost: view.getUint32(24, true) }
}

const headerLength = 16
/** A record has at most this many bytes (MAX_AUDIT_MESSAGE_LENGTH), and the kernel adds its identification. */
const longestRecord = 16 << 10
/** Types of records: of programs, and of the kernel. */
const [firstRecord, lastRecord] = [1100, 2999]

/**
 * The line of a record, `type=NAME msg=audit(SECONDS.MS:SERIAL): …`, from one datagram; undefined for a message that is none. The length
 * in the header of a record is wrong in many releases of the kernel, so the record is what follows the header. Throws DecodeError.
 */
export function readAuditRecord(datagram: Uint8Array): string | undefined {
  if (datagram.length < headerLength) throw new DecodeError('audit message', 0, `${datagram.length} bytes`)
  const type = new DataView(datagram.buffer, datagram.byteOffset).getUint16(4, true)
  if (type < firstRecord || type > lastRecord) return undefined
  const text = Buffer.from(datagram.subarray(headerLength, headerLength + longestRecord)).toString('latin1')
  // Values of programs are quoted or in hexadecimal; what is no printable character ends no line of the log.
  return `type=${recordTypeName(type)} msg=${text.replace(/\0+$/, '').replaceAll(/[^\x20-\x7e]/g, '?')}`
}
