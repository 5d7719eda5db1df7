/** Messages of the Trivial File Transfer Protocol (RFC 1350), without options. */
import { DecodeError } from '../decode-error.ts'

const opcode = { read: 1, data: 3, acknowledgement: 4, error: 5 } as const
/** Bytes of a block; a shorter one is the last. */
export const blockSize = 512
export const tftpPort = 69

/** What a server sends: a block of the file, or the reason for which there is none. */
export type TftpMessage =
  | { readonly kind: 'data'; readonly block: number; readonly bytes: Uint8Array }
  | { readonly kind: 'error'; readonly code: number; readonly text: string }

/** Reads a message of a server. Throws DecodeError. */
export function readTftp(datagram: Uint8Array): TftpMessage {
  const bytes = Buffer.from(datagram.buffer, datagram.byteOffset, datagram.length)
  if (bytes.length < 4) throw new DecodeError('TFTP message', 0, `${bytes.length} bytes`)
  const code = bytes.readUInt16BE(0)
  if (code === opcode.data) {
    if (bytes.length > 4 + blockSize) throw new DecodeError('TFTP message', 4, `a block of ${bytes.length - 4} bytes`)
    return { kind: 'data', block: bytes.readUInt16BE(2), bytes: bytes.subarray(4) }
  }
  if (code !== opcode.error) throw new DecodeError('TFTP message', 0, `operation ${code}`)
  const end = bytes.indexOf(0, 4)
  const text = bytes.toString('latin1', 4, end < 0 ? bytes.length : end).replaceAll(/[^ -~]/g, '?')
  return { kind: 'error', code: bytes.readUInt16BE(2), text }
}

/** A request for a file as it is ("octet"). Throws RangeError for a name that cannot be sent. */
export function writeReadRequest(file: string): Buffer {
  if (file === '' || file.includes('\0') || Buffer.byteLength(file) > blockSize - 10) throw new RangeError(`"${file}" is no name of a file`)
  return Buffer.concat([Buffer.of(0, opcode.read), Buffer.from(`${file}\0octet\0`)])
}

/** Confirms a block. */
export function writeAcknowledgement(block: number): Buffer {
  const bytes = Buffer.of(0, opcode.acknowledgement, 0, 0)
  bytes.writeUInt16BE(block, 2)
  return bytes
}
