/** A kernel module as a file: a relocatable ELF object for 64 bits (elf(5)), with its signature behind it (kernel scripts/sign-file.c). */
import { DecodeError } from '../decode-error.ts'

/** What the tables of modules are made of, and what the kernel looks at before it loads a module. */
export interface ModuleFile {
  /** The strings of `.modinfo` in their order: keys and values. */
  readonly info: readonly (readonly [key: string, value: string])[]
  readonly exported: readonly string[]
  /** Symbols that the kernel or other modules export, in the order of the symbol table. */
  readonly needed: readonly string[]
  /** Whether a signature is appended; whether the kernel knows its key shows when it is loaded. */
  readonly signed: boolean
}

const limits = { symbols: 1 << 20, strings: 1 << 17, name: 512 }
const [headerSize, sectionSize, symbolSize] = [64, 64, 24]
const magic = Buffer.from('\x7fELF')
/** Of the header: 64 bits, little endian; relocatable. */
const [wide, little, relocatable] = [2, 1, 1]
const signatureEnd = Buffer.from('~Module signature appended~\n')
/** struct module_signature: the kind of the signature at 2, its length at 8. */
const signatureHead = { size: 12, kind: 2, length: 8 }
const pkcs7 = 2
const undefinedSection = 0
const checksum = '__crc_'

const malformed = (offset: number, detail: string) => new DecodeError('kernel module', offset, detail)

/** Reads a module that is not compressed. */
export function parseModule(content: Uint8Array): ModuleFile {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.length)
  const sections = sectionsOf(bytes)
  const symbols = symbolsOf(sections.get('.symtab'), sections.get('.strtab'))
  const checked = symbols.filter(({ name }) => name.startsWith(checksum)).map(({ name }) => name.slice(checksum.length))
  return {
    info: stringsOf(sections.get('.modinfo')).map((text) => {
      const equals = text.indexOf('=')
      return equals < 0 ? [text, text] : [text.slice(0, equals), text.slice(equals + 1)]
    }),
    // A kernel without versions of symbols has no checksums of them.
    exported: checked.length > 0 ? checked : stringsOf(sections.get('__ksymtab_strings')),
    needed: symbols.filter(({ name, section }) => section === undefinedSection && name !== '').map(({ name }) => name),
    signed: hasSignature(bytes),
  }
}

/** The sections by their names; of two with one name the first. */
function sectionsOf(bytes: Buffer): Map<string, Buffer> {
  if (bytes.length < headerSize || !bytes.subarray(0, 4).equals(magic)) throw malformed(0, 'it is no ELF file')
  if (bytes[4] !== wide || bytes[5] !== little || bytes.readUInt16LE(16) !== relocatable)
    throw malformed(4, 'it is no relocatable object for 64 bits, little endian')
  const start = Number(bytes.readBigUInt64LE(40))
  const count = bytes.readUInt16LE(60)
  if (bytes.readUInt16LE(58) !== sectionSize || start + count * sectionSize > bytes.length) throw malformed(40, 'its sections lie outside')
  const named = (at: number): { name: number; content: Buffer } => {
    const head = start + at * sectionSize
    const none = bytes.readUInt32LE(head + 4) === 8 // SHT_NOBITS
    const offset = Number(bytes.readBigUInt64LE(head + 24))
    const size = none ? 0 : Number(bytes.readBigUInt64LE(head + 32))
    if (!none && offset + size > bytes.length) throw malformed(head, 'a section lies outside')
    return { name: bytes.readUInt32LE(head), content: bytes.subarray(offset, offset + size) }
  }
  const names = bytes.readUInt16LE(62)
  if (names >= count) throw malformed(62, 'its sections have no names')
  const strings = named(names).content
  const found = new Map<string, Buffer>()
  for (let at = 1; at < count; at++) {
    const { name, content } = named(at)
    const text = textAt(strings, name)
    if (!found.has(text)) found.set(text, content)
  }
  return found
}

/** A name in a table of strings. */
function textAt(strings: Buffer, offset: number): string {
  const window = strings.subarray(offset, offset + limits.name)
  const end = window.indexOf(0)
  if (end < 0) throw malformed(offset, `a name outside its table, or of ${limits.name} bytes and more`)
  return window.toString('latin1', 0, end)
}

interface ModuleSymbol {
  readonly name: string
  readonly section: number
}

/** The table of symbols without its first entry, which stands for none. */
function symbolsOf(table: Buffer = Buffer.alloc(0), strings: Buffer = Buffer.alloc(0)): ModuleSymbol[] {
  const count = table.length / symbolSize
  if (!Number.isInteger(count) || count > limits.symbols) throw malformed(0, `a symbol table of ${table.length} bytes`)
  const found: ModuleSymbol[] = []
  for (let at = symbolSize; at < table.length; at += symbolSize)
    found.push({ name: textAt(strings, table.readUInt32LE(at)), section: table.readUInt16LE(at + 6) })
  return found
}

/** The strings of a section, between which any number of zeros lie. */
function stringsOf(section: Buffer = Buffer.alloc(0)): string[] {
  const found = section
    .toString('latin1')
    .split('\0')
    .filter((text) => text !== '')
  if (found.length > limits.strings) throw malformed(0, `a section of more than ${limits.strings} strings`)
  return found
}

function hasSignature(bytes: Buffer): boolean {
  const end = bytes.length - signatureEnd.length
  const head = end - signatureHead.size
  if (head < headerSize || !bytes.subarray(end).equals(signatureEnd)) return false
  const length = bytes.readUInt32BE(head + signatureHead.length)
  return bytes[head + signatureHead.kind] === pkcs7 && length > 0 && length < head - headerSize
}
