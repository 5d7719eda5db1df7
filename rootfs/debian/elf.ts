/** The shared libraries that a program needs (ELF-64 little endian; System V ABI, sections 4 and 5). */

/** The dynamic linking information of an ELF file. */
export interface ElfLinks {
  /** DT_NEEDED, in order. */
  needed: string[]
  /** DT_SONAME. */
  soname?: string
  /** PT_INTERP, the dynamic linker. */
  interpreter?: string
}

/** The file begins as ELF but cannot be read as such. */
export class ElfError extends Error {
  override name = 'ElfError'
}

const ptLoad = 1
const ptDynamic = 2
const ptInterp = 3
const dtNeeded = 1n
const dtStrtab = 5n
const dtStrsz = 10n
const dtSoname = 14n

/** Reads the links of an ELF file; undefined when the bytes are no ELF file. */
export function readElf(bytes: Uint8Array): ElfLinks | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length < 4 || view.getUint32(0) !== 0x7f454c46) return undefined
  const need = (offset: number, length: number) => {
    if (!Number.isSafeInteger(offset) || offset < 0 || offset + length > bytes.length)
      throw new ElfError(`ELF: ${length} bytes at ${offset} lie outside`)
  }
  const u64 = (offset: number) => {
    need(offset, 8)
    return view.getBigUint64(offset, true)
  }
  need(0, 64)
  if (bytes[4] !== 2 || bytes[5] !== 1) throw new ElfError('ELF: not 64 bit little endian')
  const table = Number(u64(32))
  const entrySize = view.getUint16(54, true)
  const count = view.getUint16(56, true)
  if (count && entrySize < 56) throw new ElfError(`ELF: program header of ${entrySize} bytes`)
  const segments = Array.from({ length: count }, (_, n) => {
    const at = table + n * entrySize
    need(at, 56)
    return { type: view.getUint32(at, true), offset: Number(u64(at + 8)), address: u64(at + 16), size: Number(u64(at + 32)) }
  })
  const text = (offset: number, limit: number) => {
    need(offset, 1)
    const end = bytes.indexOf(0, offset)
    if (end < 0 || end - offset > limit) throw new ElfError(`ELF: string at ${offset} does not end`)
    return Buffer.from(bytes.subarray(offset, end)).toString('latin1')
  }
  const links: ElfLinks = { needed: [] }
  const interpreter = segments.find((segment) => segment.type === ptInterp)
  if (interpreter) links.interpreter = text(interpreter.offset, 4096)
  const dynamic = segments.find((segment) => segment.type === ptDynamic)
  if (!dynamic) return links
  need(dynamic.offset, dynamic.size)
  const tags: [bigint, bigint][] = []
  for (let at = dynamic.offset; at + 16 <= dynamic.offset + dynamic.size; at += 16) {
    const tag = u64(at)
    if (tag === 0n) break
    tags.push([tag, u64(at + 8)])
  }
  const value = (tag: bigint) => tags.find(([each]) => each === tag)?.[1]
  const strings = value(dtStrtab)
  const size = Number(value(dtStrsz) ?? 0n)
  if (strings === undefined) return links
  const holder = segments.find((s) => s.type === ptLoad && strings >= s.address && strings < s.address + BigInt(s.size))
  if (!holder) throw new ElfError('ELF: the string table is in no segment')
  const base = holder.offset + Number(strings - holder.address)
  const string = (offset: bigint) => {
    if (offset >= BigInt(size)) throw new ElfError(`ELF: string ${offset} lies outside the string table`)
    return text(base + Number(offset), 4096)
  }
  for (const [tag, offset] of tags) {
    if (tag === dtNeeded) links.needed.push(string(offset))
    if (tag === dtSoname) links.soname = string(offset)
  }
  return links
}
