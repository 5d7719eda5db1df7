/** Archives of the kernel's initramfs (Documentation/driver-api/early-userspace/buffer-format.rst): cpio in the format `newc`. */
import { DecodeError } from './decode-error.ts'

/** One entry; a file's contents follow its header. */
export interface CpioHeader {
  /** Relative path, without a leading slash. */
  name: string
  /** Type and permissions as in stat(2). */
  mode: number
  /** Size of the contents in bytes. */
  size: number
  /** Device number. */
  device?: { major: number; minor: number }
}

/** An entry with its contents. */
export interface CpioEntry extends CpioHeader {
  content: Uint8Array
}

const magic = '070701'
const trailer = 'TRAILER!!!'
const headerSize = 110
const nameLimit = 4096 // PATH_MAX of the kernel
const fileType = { mask: 0o170000, dir: 0o040000, file: 0o100000, symlink: 0o120000, character: 0o020000, block: 0o060000 } as const

/** File types, for modes. */
export const cpioTypes: Readonly<Record<'dir' | 'file' | 'symlink' | 'character' | 'block', number>> = fileType

const hex = (value: number) => value.toString(16).padStart(8, '0')
const padding = (size: number) => (4 - (size % 4)) % 4

/** The header of entry number `inode`, with its name and padding. The owner is root, there are no times. */
export function cpioHeader({ name, mode, size, device }: CpioHeader, inode: number): Uint8Array {
  const bytes = Buffer.from(`${name}\0`)
  const links = (mode & fileType.mask) === fileType.dir ? 2 : 1
  const fields = [inode, mode, 0, 0, links, 0, size, 0, 0, device?.major ?? 0, device?.minor ?? 0, bytes.length, 0]
  const head = Buffer.from(magic + fields.map(hex).join(''), 'latin1')
  return Buffer.concat([head, bytes, Buffer.alloc(padding(headerSize + bytes.length))])
}

/** The padding after contents of this size. */
export function cpioPadding(size: number): Uint8Array {
  return new Uint8Array(padding(size))
}

/** The end of an archive. */
export function cpioTrailer(): Uint8Array {
  return cpioHeader({ name: trailer, mode: 0, size: 0 }, 0)
}

/** Parses one archive up to its trailer. */
export function parseCpio(bytes: Uint8Array): CpioEntry[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const entries: CpioEntry[] = []
  let at = 0
  for (;;) {
    if (at + headerSize > bytes.length) throw new DecodeError('cpio', at, 'it ends within a header')
    if (text.toString('latin1', at, at + 6) !== magic) throw new DecodeError('cpio', at, 'no header of the form newc')
    const field = (index: number) => {
      const digits = text.toString('latin1', at + 6 + index * 8, at + 14 + index * 8)
      if (!/^[0-9a-fA-F]{8}$/.test(digits)) throw new DecodeError('cpio', at + 6 + index * 8, 'not a number')
      return Number.parseInt(digits, 16)
    }
    const [mode, size, major, minor, nameSize] = [field(1), field(6), field(9), field(10), field(11)]
    if (nameSize < 2 || nameSize > nameLimit) throw new DecodeError('cpio', at + 94, `a name of ${nameSize} bytes`)
    const start = at + headerSize + nameSize + padding(headerSize + nameSize)
    if (start + size > bytes.length) throw new DecodeError('cpio', at, 'it ends within an entry')
    const name = text.toString('utf8', at + headerSize, at + headerSize + nameSize - 1)
    if (name.includes('\0')) throw new DecodeError('cpio', at + headerSize, 'a NUL within a name')
    if (name === trailer) return entries
    const kind = mode & fileType.mask
    const device = kind === fileType.character || kind === fileType.block ? { device: { major, minor } } : {}
    entries.push({ name, mode, size, ...device, content: bytes.subarray(start, start + size) })
    at = start + size + padding(size)
  }
}
