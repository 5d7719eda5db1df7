/** Parsers of images of disks and programs. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeIso } from '../../rootfs/image/iso.ts'
import { parseRange } from '../../src/oci/byte-range.ts'
import { parseGivenMeta } from '../../src/os/block/meta/given.ts'
import { metaParameter } from '../../src/programs/factory/meta-parameter.ts'
import { parseTrust, trustArchive } from '../../src/programs/factory/release/initramfs.ts'
import { unpackerOf } from '../../src/programs/factory/root/compression.ts'
import { ContentReader } from '../../src/programs/factory/root/contents.ts'
import { readSquashfsBase } from '../../src/programs/factory/root/read.ts'
import { parseDirectoryListing, parseInode } from '../../src/programs/factory/root/records.ts'
import { Tree } from '../../src/programs/factory/root/tree.ts'
import { writeSquashfs } from '../../src/programs/factory/root/writer.ts'
import { peSections, peSigned, replaceSection } from '../../src/wire/efi/pe.ts'
import { parseIsoRecords, readIsoFiles, replaceIsoFile } from '../../src/wire/iso9660/files.ts'
import { parseModule } from '../../src/wire/modules/module-file.ts'
import { moduleTables } from '../../src/wire/modules/tables.ts'
import type { ReadAt } from '../../src/wire/tar/read.ts'
import { program } from '../rootfs/program.ts'
import { builtModule, family } from '../wire/modules/built-module.ts'
import { bytes, type Target } from './target.ts'

const [iso] = makeIso({
  ...{ label: 'SEED', grub: { medium: Buffer.alloc(4096), hybrid: Buffer.alloc(512) }, efi: { file: '', size: 0 }, serial: 1 },
  files: ['usr/a', 'usr/b.txt'].map((path) => ({ path, content: Buffer.from(path) })),
})

/** A small root file system. */
const squashfs = await (async () => {
  const folder = mkdtempSync(join(tmpdir(), 'fuzz-root-'))
  const tree = new Tree()
  tree.text('seed', '/etc/a', 'a')
  tree.text('seed', '/etc/large', 'b'.repeat(9000))
  tree.link('seed', '/b', 'etc')
  const plain = { id: 6, pressSmall: (content: Uint8Array) => content }
  const press = { compressor: plain, press: async (content: Uint8Array) => ({ bytes: content, compressed: false }) }
  try {
    await writeSquashfs(join(folder, 'root'), tree.entries(), { blockSize: 4096, press })
    return readFileSync(join(folder, 'root'))
  } finally {
    rmSync(folder, { recursive: true })
  }
})()
const trust = trustArchive({ rootHash: 'ab'.repeat(32), salt: 'cd'.repeat(32), dataBlocks: 1, blocks: 2 }, 'key')

/** Parsers by name. */
export const imageTargets: Record<string, Target> = {
  'ISO 9660 images': {
    seeds: iso && 'bytes' in iso ? [iso.bytes] : [],
    answers: ['DecodeError'],
    async run(input) {
      const files = await readIsoFiles(async (offset, length) => input.subarray(offset, offset + length), input.length)
      for (const place of files.values()) if (place.room > 0) replaceIsoFile(place, Buffer.alloc(1))
    },
  },
  'folders of ISO 9660': {
    seeds: iso && 'bytes' in iso ? [iso.bytes.subarray(22 * 2048, 23 * 2048)] : [],
    answers: ['DecodeError'],
    run: (input) => void parseIsoRecords(Buffer.from(input)),
  },
  'root file systems of releases': {
    seeds: [squashfs],
    answers: ['SquashfsError'],
    run: async (input) => {
      const read: ReadAt = async (offset, length) => input.subarray(offset, offset + length)
      const base = await readSquashfsBase(read, input.length, unpackerOf)
      const reader = new ContentReader(read, base, unpackerOf(base.compression))
      for (const path of base.contents.keys()) await reader.content(path)
    },
  },
  'kernel modules': {
    seeds: Object.values(family).map(builtModule),
    answers: ['DecodeError', 'ModuleTableError'],
    run: (input) => void moduleTables([{ path: 'a.ko', name: 'a', file: parseModule(input) }], ''),
  },
  'inodes of SquashFS': {
    seeds: [Buffer.from('0300ed01000000000000000001000000010000000100000061', 'hex')],
    answers: ['SquashfsError'],
    run: (input) => void parseInode(Buffer.from(input), 4096),
  },
  'folders of SquashFS': {
    seeds: [Buffer.from('000000000000000001000000000000000200000061', 'hex')],
    answers: ['SquashfsError'],
    run: (input) => void parseDirectoryListing(Buffer.from(input)),
  },
  'what an initramfs trusts': {
    seeds: [trust],
    answers: ['DecodeError'],
    run: (input) => void parseTrust(Buffer.from(input)),
  },
  'programs of the firmware': {
    seeds: [program()],
    answers: ['PeError'],
    run(input) {
      const image = Buffer.from(input)
      peSigned(image)
      for (const { name } of peSections(image)) replaceSection(image, image.length, { name, content: Buffer.alloc(8) })
    },
  },
  'META values on a command line': {
    seeds: [[{ key: 10, value: 'a' }], [{ key: 12, value: 'b'.repeat(300) }]].map((values) => bytes(metaParameter(values))),
    answers: ['DecodeError'],
    run: (input) => void parseGivenMeta(Buffer.from(input).toString('latin1')),
  },
  'ranges of blobs': {
    seeds: ['bytes=0-', 'bytes=-5', 'bytes=1-2', 'bytes=0-1,3-4'].map((text) => bytes(text)),
    answers: [],
    run(input) {
      const range = parseRange(Buffer.from(input).toString('latin1'), 1000)
      if (typeof range === 'object' && !(range.start >= 0 && range.start <= range.end && range.end < 1000))
        throw new RangeError(`${range.start}-${range.end} lies outside of 1000 bytes`)
    },
  },
}
