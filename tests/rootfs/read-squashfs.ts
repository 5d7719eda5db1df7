/** Reads a SquashFS 4.0 image with zstd back, only as far as the tests of its writer need: written from the format, not from the writer. */

/** One entry of an image. */
export interface Found {
  type: 'dir' | 'file' | 'symlink'
  mode: number
  uid: number
  gid: number
  number: number
  names: number
  target?: string
  content?: Uint8Array
}

const plain = 1 << 24

/** All entries by path. */
export function readSquashfs(image: Buffer): Map<string, Found> {
  if (image.readUInt32LE(0) !== 0x73717368 || image.readUInt16LE(28) !== 4) throw new Error('no SquashFS 4.0')
  const blockSize = image.readUInt32LE(12)
  const fragmentCount = image.readUInt32LE(16)
  const place = (at: number) => Number(image.readBigUInt64LE(at))
  const [idTable, inodeTable, directoryTable, fragmentTable] = [48, 64, 72, 80].map(place) as [number, number, number, number]

  /** One metadata block: its content and where the next begins. */
  const metadataBlock = (at: number) => {
    const length = image.readUInt16LE(at)
    const size = length & 0x7fff
    const bytes = image.subarray(at + 2, at + 2 + size)
    return { content: length & 0x8000 ? bytes : Buffer.from(Bun.zstdDecompressSync(bytes)), next: at + 2 + size }
  }
  const ends = new Map([
    [inodeTable, directoryTable],
    [directoryTable, place(fragmentCount > 0 ? fragmentTable : idTable)],
  ])
  const metadata = (table: number, block: number, offset: number, length: number): Buffer => {
    const parts: Buffer[] = []
    let at = table + block
    for (let have = -offset; have < length; ) {
      const { content, next } = metadataBlock(at)
      parts.push(content)
      have += content.length
      at = next
      if (at >= (ends.get(table) ?? image.length)) break
    }
    return Buffer.concat(parts).subarray(offset, offset + length)
  }
  const id = (index: number) => metadataBlock(place(idTable)).content.readUInt32LE(4 * index)
  const data = (at: number, size: number) => {
    const bytes = image.subarray(at, at + (size & ~plain))
    return size & plain ? bytes : Bun.zstdDecompressSync(bytes)
  }
  const fragment = (index: number) => {
    if (index >= fragmentCount) throw new Error(`fragment ${index} of ${fragmentCount}`)
    const record = metadataBlock(place(fragmentTable + 8 * Math.floor(index / 512))).content.subarray(16 * (index % 512))
    return data(Number(record.readBigUInt64LE(0)), record.readUInt32LE(8))
  }

  const found = new Map<string, Found>()
  const visit = (path: string, block: number, offset: number) => {
    const head = metadata(inodeTable, block, offset, 4096)
    const kind = head.readUInt16LE(0)
    const common = {
      mode: head.readUInt16LE(2),
      uid: id(head.readUInt16LE(4)),
      gid: id(head.readUInt16LE(6)),
      number: head.readUInt32LE(12),
    }
    if (kind === 3) {
      const length = head.readUInt32LE(20)
      found.set(path, { type: 'symlink', ...common, names: head.readUInt32LE(16), target: head.toString('utf8', 24, 24 + length) })
    } else if (kind === 2 || kind === 9) {
      const long = kind === 9
      const start = long ? Number(head.readBigUInt64LE(16)) : head.readUInt32LE(16)
      const size = long ? Number(head.readBigUInt64LE(24)) : head.readUInt32LE(28)
      const index = head.readUInt32LE(long ? 44 : 20)
      const within = head.readUInt32LE(long ? 48 : 24)
      const sizes = long ? 56 : 32
      const parts: Uint8Array[] = []
      const blocks = index === 0xffffffff ? Math.ceil(size / blockSize) : Math.floor(size / blockSize)
      for (let n = 0, at = start; n < blocks; n++) {
        const stored = head.readUInt32LE(sizes + 4 * n)
        parts.push(data(at, stored))
        at += stored & ~plain
      }
      if (index !== 0xffffffff) parts.push(fragment(index).subarray(within, within + (size % blockSize)))
      const content = Buffer.concat(parts)
      if (content.length !== size) throw new Error(`${path}: ${content.length} bytes of ${size}`)
      found.set(path, { type: 'file', ...common, names: long ? head.readUInt32LE(40) : 1, content })
    } else if (kind === 1) {
      found.set(path || '/', { type: 'dir', ...common, names: head.readUInt32LE(20) })
      const length = head.readUInt16LE(24) - 3
      const listing = metadata(directoryTable, head.readUInt32LE(16), head.readUInt16LE(26), length)
      let last = ''
      for (let at = 0; at < length; ) {
        const count = listing.readUInt32LE(at) + 1
        const inodes = listing.readUInt32LE(at + 4)
        at += 12
        for (let n = 0; n < count; n++) {
          const size = listing.readUInt16LE(at + 6) + 1
          const name = listing.toString('utf8', at + 8, at + 8 + size)
          if (name <= last) throw new Error(`${path}: "${name}" after "${last}"`)
          last = name
          visit(`${path}/${name}`, inodes, listing.readUInt16LE(at))
          at += 8 + size
        }
      }
    } else {
      throw new Error(`${path}: inode of kind ${kind}`)
    }
  }
  const root = image.readBigUInt64LE(32)
  visit('', Number(root >> 16n), Number(root & 0xffffn))
  return found
}
