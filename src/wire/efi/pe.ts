/**
 * Programs of the firmware (Microsoft "PE Format"): their sections, and how some are added behind them. Each begins at a multiple
 * of 2 KiB in the file, so that other file systems over the same bytes can name them, too.
 */

/** The stub has no room, or is no program of the firmware. */
export class PeError extends Error {
  override name = 'PeError'
}

/** A section of a program. */
export interface PeSection {
  name: string
  /** Where it begins in the file. */
  offset: number
  /** Bytes of content. */
  size: number
  /** Bytes that the file holds for it. */
  room: number
  address: number
}

const sectionHeader = 40
const certificateTable = 4 // its number among the data directories
const fileAlignment = 2048
const memoryAlignment = 4096
const flags = 0x40000040 // IMAGE_SCN_CNT_INITIALIZED_DATA | IMAGE_SCN_MEM_READ
const align = (value: number, to: number) => Math.ceil(value / to) * to

interface Headers {
  /** Offset of the file header, behind `PE\0\0`. */
  coff: number
  optional: number
  sections: number
  table: number
}

function headersOf(image: Buffer): Headers {
  if (image.length < 0x40 || image.toString('latin1', 0, 2) !== 'MZ') throw new PeError('no program: it does not begin with MZ')
  const pe = image.readUInt32LE(0x3c)
  if (pe + 24 + 112 > image.length || image.toString('latin1', pe, pe + 4) !== 'PE\0\0')
    throw new PeError('no program of the firmware: no PE header')
  const coff = pe + 4
  const optional = coff + 20
  if (image.readUInt16LE(optional) !== 0x20b) throw new PeError('no program for 64 bits')
  const sections = image.readUInt16LE(coff + 2)
  const table = optional + image.readUInt16LE(coff + 16)
  if (sections > 96 || table + sections * sectionHeader > image.length) throw new PeError('its table of sections lies outside')
  return { coff, optional, sections, table }
}

/** The sections of a program of `fileSize` bytes, of which the beginning with all headers suffices. */
export function peSections(image: Buffer, fileSize = image.length): PeSection[] {
  const { sections, table } = headersOf(image)
  return Array.from({ length: sections }, (_, at) => {
    const header = table + at * sectionHeader
    const raw = image.readUInt32LE(header + 16)
    const section = {
      name: image.toString('latin1', header, header + 8).replace(/\0+$/, ''),
      offset: image.readUInt32LE(header + 20),
      size: Math.min(image.readUInt32LE(header + 8), raw),
      room: raw,
      address: image.readUInt32LE(header + 12),
    }
    if (section.offset + raw > fileSize) throw new PeError(`section "${section.name}" lies outside`)
    return section
  })
}

/** Whether a program is signed for Secure Boot: its table of certificates has content ("PE Format", attribute certificate table). */
export function peSigned(image: Buffer): boolean {
  const { optional, table } = headersOf(image)
  const size = optional + 112 + certificateTable * 8 + 4
  return image.readUInt32LE(optional + 108) > certificateTable && size + 4 <= table && image.readUInt32LE(size) > 0
}

/** What differs when a section gets other content in its place, at offsets of the file. Throws PeError when it does not fit. */
export function replaceSection(
  image: Buffer,
  fileSize: number,
  { name, content }: { name: string; content: Uint8Array },
): { offset: number; bytes: Uint8Array }[] {
  const sections = peSections(image, fileSize)
  const at = sections.findIndex((each) => each.name === name)
  const section = sections[at]
  if (!section) throw new PeError(`the program has no section "${name}"`)
  const { offset, address, room } = section
  // In memory a section is aligned more widely than in the file, so that what fits here fits there.
  const next = Math.min(...sections.filter((each) => each.address > address).map((each) => each.address - address))
  if (content.length > Math.min(room, next))
    throw new PeError(`section "${name}" has room for ${Math.min(room, next)} bytes, not ${content.length}`)
  const size = Buffer.alloc(4)
  size.writeUInt32LE(content.length)
  return [
    { offset: headersOf(image).table + at * sectionHeader + 8, bytes: size },
    { offset, bytes: Buffer.concat([content, Buffer.alloc(room - content.length)]) },
  ]
}

/** How much memory a program needs. */
export const peImageSize = (image: Buffer): number => image.readUInt32LE(headersOf(image).optional + 56)

/**
 * A program without what lies behind its sections (names of symbols), its last section filled up to where more can begin:
 * signatures count neither gaps nor loose ends, and readers do not agree on them.
 */
function trimmed(program: Buffer): Buffer {
  const { coff, sections, table } = headersOf(program)
  let [last, end] = [table, 0]
  for (let header = table; header < table + sections * sectionHeader; header += sectionHeader) {
    const after = program.readUInt32LE(header + 16) + program.readUInt32LE(header + 20)
    if (after > end) [last, end] = [header, after]
  }
  const image = Buffer.alloc(align(end, fileAlignment))
  program.copy(image, 0, 0, end)
  image.writeUInt32LE(image.length - program.readUInt32LE(last + 20), last + 16)
  image.fill(0, coff + 8, coff + 16) // the table of symbols
  return image
}

/** Adds sections behind those that a program has. */
export function addSections(program: Buffer, added: readonly { name: string; content: Uint8Array; room?: number }[]): Buffer {
  peSections(program)
  const image = trimmed(program)
  const { coff, optional, sections, table } = headersOf(image)
  const headersSize = image.readUInt32LE(optional + 60)
  if (table + (sections + added.length) * sectionHeader > headersSize) throw new PeError('the stub has no room for more sections')
  const parts: Uint8Array[] = [image]
  let offset = image.length
  let address = align(peImageSize(image), memoryAlignment)
  for (const [at, { name, content, room = 0 }] of added.entries()) {
    if (name.length > 8) throw new PeError(`section name "${name}" is longer than 8 characters`)
    const raw = align(content.length, fileAlignment)
    const header = table + (sections + at) * sectionHeader
    image.fill(0, header, header + sectionHeader)
    image.write(name, header, 'latin1')
    image.writeUInt32LE(content.length, header + 8)
    image.writeUInt32LE(address, header + 12)
    image.writeUInt32LE(raw, header + 16)
    image.writeUInt32LE(offset, header + 20)
    image.writeUInt32LE(flags, header + 36)
    parts.push(content, new Uint8Array(raw - content.length))
    offset += raw
    address = align(address + Math.max(raw, room), memoryAlignment)
  }
  image.writeUInt16LE(sections + added.length, coff + 2)
  image.writeUInt32LE(address, optional + 56)
  image.writeUInt32LE(0, optional + 64) // no checksum; the firmware looks at signatures only
  return Buffer.concat(parts)
}
