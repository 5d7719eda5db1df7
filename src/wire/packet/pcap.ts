/** Capture files: the classic format of libpcap, little endian, with microseconds (pcap-savefile(5)). */
import { DecodeError } from '../decode-error.ts'

const magic = 0xa1b2c3d4
const headerLength = 24
const recordLength = 16
const largest = 1 << 18

/** The link type: packets start with an Ethernet header, or with the IP header (LINKTYPE_ numbers). */
export const linkType = { ethernet: 1, raw: 101 } as const

/** One captured packet. */
export interface PcapRecord {
  /** Microseconds since 1970. */
  readonly time: number
  /** Original length, of which `bytes` may be only the beginning. */
  readonly length: number
  readonly bytes: Uint8Array
}

/** The file header. */
export function pcapHeader(type: number, snapLength: number): Uint8Array {
  const bytes = Buffer.alloc(headerLength)
  bytes.writeUInt32LE(magic, 0)
  bytes.writeUInt16LE(2, 4)
  bytes.writeUInt16LE(4, 6)
  bytes.writeUInt32LE(snapLength, 16)
  bytes.writeUInt32LE(type, 20)
  return bytes
}

/** A packet record. */
export function pcapRecord({ time, length, bytes }: PcapRecord): Uint8Array {
  const record = Buffer.alloc(recordLength + bytes.length)
  record.writeUInt32LE(Math.floor(time / 1e6), 0)
  record.writeUInt32LE(Math.floor(time % 1e6), 4)
  record.writeUInt32LE(bytes.length, 8)
  record.writeUInt32LE(length, 12)
  record.set(bytes, recordLength)
  return record
}

/** Reads a file as it arrives. */
export class PcapReader {
  #held: Buffer = Buffer.alloc(0)
  #type?: number

  /** LINKTYPE_ of the packets, once the file header has arrived. */
  get type(): number | undefined {
    return this.#type
  }

  /** The packets that these bytes complete. Throws DecodeError. */
  push(bytes: Uint8Array): PcapRecord[] {
    this.#held = this.#held.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#held, bytes])
    const records: PcapRecord[] = []
    let at = 0
    if (this.#type === undefined) {
      if (this.#held.length < headerLength) return records
      if (this.#held.readUInt32LE(0) !== magic) throw new DecodeError('pcap header', 0, 'it has another magic number')
      this.#type = this.#held.readUInt32LE(20)
      at = headerLength
    }
    while (this.#held.length - at >= recordLength) {
      const kept = this.#held.readUInt32LE(at + 8)
      if (kept > largest) throw new DecodeError('pcap record', at, `${kept} bytes are more than ${largest}`)
      if (this.#held.length - at < recordLength + kept) break
      records.push({
        time: this.#held.readUInt32LE(at) * 1e6 + this.#held.readUInt32LE(at + 4),
        length: this.#held.readUInt32LE(at + 12),
        bytes: Uint8Array.prototype.slice.call(this.#held, at + recordLength, at + recordLength + kept),
      })
      at += recordLength + kept
    }
    this.#held = this.#held.subarray(at)
    return records
  }
}
