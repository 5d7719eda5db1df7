/** A zip archive written entry by entry (APPNOTE.TXT 6.3, without ZIP64): deflated, names in UTF-8. */

import { type FileHandle, open } from 'node:fs/promises'
import { deflateRawSync } from 'node:zlib'
import { SerialQueue } from '../../../timing/serial-queue.ts'

const localHeader = 0x04034b50
const centralHeader = 0x02014b50
const endOfCentral = 0x06054b50
const versionNeeded = 20
const utf8Names = 0x0800
const deflated = 8
const largest = 0xffff_ffff
const mostEntries = 0xffff
const regularFile = (0o100600 << 16) >>> 0
const madeByUnix = 3 << 8

interface Entry {
  readonly name: Buffer
  readonly crc: number
  readonly packed: number
  readonly size: number
  readonly offset: number
  readonly time: number
  readonly date: number
}

/** Writes one archive; entries may come from many hands at once. */
export class ZipWriter {
  readonly #entries: Entry[] = []
  #offset = 0
  readonly #queue = new SerialQueue()

  private constructor(readonly file: FileHandle) {}

  /** Makes the file, for its owner alone; one that is there already is replaced. */
  static async create(path: string): Promise<ZipWriter> {
    return new ZipWriter(await open(path, 'w', 0o600))
  }

  /** Adds a file. Throws RangeError when the archive would be larger than the format allows. */
  add(name: string, content: Uint8Array | string, modified: Date): Promise<void> {
    return this.#queue.run(() => this.#add(name, typeof content === 'string' ? Buffer.from(content) : content, modified))
  }

  /** Writes the table of contents and closes the file. */
  end(): Promise<void> {
    return this.#queue.run(() => this.#end())
  }

  async #end(): Promise<void> {
    const start = this.#offset
    for (const entry of this.#entries) await this.#write(central(entry))
    const end = Buffer.alloc(22)
    end.writeUInt32LE(endOfCentral, 0)
    end.writeUInt16LE(this.#entries.length, 8)
    end.writeUInt16LE(this.#entries.length, 10)
    end.writeUInt32LE(this.#offset - start, 12)
    end.writeUInt32LE(start, 16)
    await this.#write(end)
    await this.file.close()
  }

  async #add(name: string, content: Uint8Array, modified: Date): Promise<void> {
    const data = deflateRawSync(content)
    if (this.#offset + data.length + 4096 > largest || this.#entries.length >= mostEntries)
      throw new RangeError(`zip archive is full: "${name}" has no room in it`)
    const [time, date] = dosTime(modified)
    const entry = {
      name: Buffer.from(name),
      crc: Bun.hash.crc32(content),
      packed: data.length,
      size: content.length,
      offset: this.#offset,
      time,
      date,
    }
    const head = Buffer.alloc(30)
    head.writeUInt32LE(localHeader, 0)
    common(head, 4, entry)
    head.writeUInt16LE(entry.name.length, 26)
    await this.#write(Buffer.concat([head, entry.name, data]))
    this.#entries.push(entry)
  }

  async #write(bytes: Buffer): Promise<void> {
    await this.file.writeFile(bytes)
    this.#offset += bytes.length
  }
}

function common(head: Buffer, at: number, { time, date, crc, packed, size }: Entry): void {
  head.writeUInt16LE(versionNeeded, at)
  head.writeUInt16LE(utf8Names, at + 2)
  head.writeUInt16LE(deflated, at + 4)
  head.writeUInt16LE(time, at + 6)
  head.writeUInt16LE(date, at + 8)
  head.writeUInt32LE(crc, at + 10)
  head.writeUInt32LE(packed, at + 14)
  head.writeUInt32LE(size, at + 18)
}

function central(entry: Entry): Buffer {
  const head = Buffer.alloc(46)
  head.writeUInt32LE(centralHeader, 0)
  head.writeUInt16LE(madeByUnix | versionNeeded, 4)
  common(head, 6, entry)
  head.writeUInt16LE(entry.name.length, 28)
  head.writeUInt32LE(regularFile, 38)
  head.writeUInt32LE(entry.offset, 42)
  return Buffer.concat([head, entry.name])
}

/** MS-DOS keeps two seconds and begins in 1980. */
function dosTime(when: Date): [time: number, date: number] {
  const year = Math.max(1980, when.getUTCFullYear())
  return [
    (when.getUTCHours() << 11) | (when.getUTCMinutes() << 5) | (when.getUTCSeconds() >> 1),
    ((year - 1980) << 9) | ((when.getUTCMonth() + 1) << 5) | when.getUTCDate(),
  ]
}
