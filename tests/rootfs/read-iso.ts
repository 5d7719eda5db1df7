/** Reads an ISO 9660 image back as its tests need it: written from the standard, not from the writer. */

const sector = 2048

/** What was found. */
export interface Iso {
  label: string
  /** Files by path, in small letters and without versions, as the kernel shows them. */
  files: Map<string, Buffer>
  boot: Record<'bios' | 'efi', { start: number; sectors: number }>
}

/** A number that is written in both byte orders; they must agree. */
function both32(bytes: Buffer, at: number): number {
  const value = bytes.readUInt32LE(at)
  if (bytes.readUInt32BE(at + 4) !== value) throw new Error(`the two byte orders at ${at} differ`)
  return value
}

function both16(bytes: Buffer, at: number): number {
  const value = bytes.readUInt16LE(at)
  if (bytes.readUInt16BE(at + 2) !== value) throw new Error(`the two byte orders at ${at} differ`)
  return value
}

/** The name in the system use field of a record (Rock Ridge, NM). */
function alternateName(record: Buffer): string | undefined {
  const start = 33 + record[32]! + (record[32]! % 2 ? 0 : 1)
  for (let at = start; at + 4 <= record.length; at += record[at + 2]!)
    if (record.toString('latin1', at, at + 2) === 'NM') return record.toString('latin1', at + 5, at + record[at + 2]!)
  return undefined
}

/** Everything in an image. */
export function readIso(image: Buffer): Iso {
  const primary = image.subarray(16 * sector, 17 * sector)
  if (primary[0] !== 1 || primary.toString('latin1', 1, 6) !== 'CD001') throw new Error('no primary volume descriptor')
  if (both16(primary, 128) !== sector) throw new Error('its blocks are not 2 KiB')
  if (both32(primary, 80) * sector !== image.length) throw new Error('the volume descriptor has another size')
  if (image[18 * sector] !== 255) throw new Error('no terminator')
  const files = new Map<string, Buffer>()
  const starts: number[] = []

  const walk = (start: number, size: number, path: string) => {
    starts.push(start)
    let previous = ''
    for (let at = start * sector; at < start * sector + size; ) {
      const length = image[at]!
      if (length === 0) {
        at = Math.ceil((at + 1) / sector) * sector
        continue
      }
      if (Math.floor(at / sector) !== Math.floor((at + length - 1) / sector)) throw new Error('a record crosses sectors')
      const [extent, bytes, folder] = [both32(image, at + 2), both32(image, at + 10), (image[at + 25]! & 2) !== 0]
      const name = image.toString('latin1', at + 33, at + 33 + image[at + 32]!)
      if (name !== '\0' && name !== '\x01') {
        if (name <= previous) throw new Error(`"${name}" is not in order`)
        previous = name
        const shown = `${path}${alternateName(image.subarray(at, at + length)) ?? name.toLowerCase().replace(/;1$/, '')}`
        if (folder) walk(extent, bytes, `${shown}/`)
        else files.set(shown, image.subarray(extent * sector, extent * sector + bytes))
      }
      at += length
    }
  }
  walk(both32(primary, 156 + 2), both32(primary, 156 + 10), '')

  const tableSize = both32(primary, 132)
  const table = image.subarray(primary.readUInt32LE(140) * sector, primary.readUInt32LE(140) * sector + tableSize)
  const listed: number[] = []
  for (let at = 0; at < table.length; at += 8 + table[at]! + (table[at]! % 2)) listed.push(table.readUInt32LE(at + 2))
  if (listed.sort().join() !== starts.sort().join()) throw new Error('the path table does not name the folders')

  const record = image.subarray(17 * sector, 18 * sector)
  if (record.toString('latin1', 7, 30) !== 'EL TORITO SPECIFICATION') throw new Error('no boot record')
  const catalog = image.subarray(record.readUInt32LE(71) * sector, record.readUInt32LE(71) * sector + sector)
  let sum = 0
  for (let at = 0; at < 32; at += 2) sum = (sum + catalog.readUInt16LE(at)) & 0xffff
  if (sum !== 0 || catalog.readUInt16LE(30) !== 0xaa55) throw new Error('the boot catalog is not valid')
  const entry = (at: number) => {
    if (catalog[at] !== 0x88) throw new Error('an entry of the boot catalog is not bootable')
    return { start: catalog.readUInt32LE(at + 8), sectors: catalog.readUInt16LE(at + 6) }
  }
  // Where no machine has a BIOS the first entry is that of UEFI.
  const onlyEfi = catalog[1] === 0xef
  if (!onlyEfi && (catalog[64] !== 0x91 || catalog[65] !== 0xef)) throw new Error('the boot catalog has no section for UEFI')
  const boot = { bios: entry(32), efi: entry(onlyEfi ? 32 : 96) }
  return { label: primary.toString('latin1', 40, 72).trim(), files, boot }
}
