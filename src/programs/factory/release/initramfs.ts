/** The ends of an initramfs: which root file system it is for, and, for machines started through a network, that root itself. */
import { cpioHeader, cpioPadding, cpioTrailer, cpioTypes, parseCpio } from '../../../wire/cpio.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { rootName, type Verity, verityLine } from '../root/verity.ts'

const rootFile = 'ichor/root'
const keyFile = 'ichor/key.pub'
const headerSize = 110

/** An entry of an archive. */
export interface InitramfsEntry {
  readonly name: string
  readonly mode: number
  readonly content?: Uint8Array
}

/** An archive of entries, in their order. */
export function initramfsArchive(entries: readonly InitramfsEntry[]): Buffer {
  const parts = entries.flatMap(({ name, mode, content = new Uint8Array() }, at) => [
    cpioHeader({ name, mode, size: content.length }, at + 1),
    content,
    cpioPadding(content.length),
  ])
  return Buffer.concat([...parts, cpioTrailer()])
}

/** The last archive, with its padding: what the root must be, and whose releases are trusted, as base64 in a line. */
export function trustArchive(verity: Verity, publicKey: string): Buffer {
  const file = (name: string, text: string): InitramfsEntry => ({ name, mode: cpioTypes.file | 0o444, content: Buffer.from(text) })
  const archive = initramfsArchive([file(rootFile, verityLine(verity)), file(keyFile, publicKey)])
  return Buffer.concat([archive, cpioPadding(archive.length)])
}

/** What an initramfs trusts, and where that archive begins. Throws DecodeError. */
export function parseTrust(initramfs: Buffer): { start: number; verity: Verity; publicKey: string } {
  const start = initramfs.lastIndexOf(Buffer.from(`${rootFile}\0`)) - headerSize
  if (start < 0) throw new DecodeError('initramfs', initramfs.length, `no "${rootFile}"`)
  const entries = parseCpio(initramfs.subarray(start))
  const text = (name: string) => Buffer.from(entries.find((each) => each.name === name)?.content ?? []).toString()
  const [, rootHash, salt, dataBlocks, blocks] = /^([0-9a-f]{64}) ([0-9a-f]{64}) (\d{1,9}) (\d{1,9})\n$/.exec(text(rootFile)) ?? []
  if (!rootHash || !salt) throw new DecodeError('initramfs', start, `"${rootFile}" cannot be read`)
  return { start, verity: { rootHash, salt, dataBlocks: Number(dataBlocks), blocks: Number(blocks) }, publicKey: text(keyFile) }
}

/** The second archive: header before the root's bytes, and what comes behind them. */
export function rootArchive(verity: Verity): { before: Uint8Array; after: Uint8Array } {
  const size = verity.blocks * 4096
  const header = cpioHeader({ name: `ichor/${rootName(verity)}`, mode: cpioTypes.file | 0o444, size }, 1)
  return { before: header, after: Buffer.concat([cpioPadding(size), cpioTrailer()]) }
}
