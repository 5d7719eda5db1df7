/** How the blocks of a release's root file system are read and written: as its own are, by Bun or by the program xz. */
import { failedWith } from '../../../wire/errno.ts'
import { FactoryError } from '../factory-error.ts'
import type { Press } from './data.ts'
import { SquashfsError } from './error.ts'
import type { Unpack } from './read.ts'

const zstd = 6
const xz = 4
/** Of Zstandard: the files of an extension are few. */
const level = 12
/** Most bytes that a table of an image has. */
const unpackedLimit = 64 << 20

const unknown = (id: number) => new SquashfsError(`the root file system of the release: its compression ${id} is not one of mkimage.sh`)

/** What unpacks metadata of a compression. Throws SquashfsError. */
export function unpackerOf(compression: number): Unpack {
  if (compression === zstd)
    return async (blocks) => {
      try {
        return Buffer.concat(blocks.map((block) => Bun.zstdDecompressSync(block)))
      } catch {
        throw new SquashfsError('the root file system of the release: a block of metadata is damaged')
      }
    }
  // Streams of XZ one behind the other are one.
  if (compression === xz) return (blocks) => runXz(['-dc'], Buffer.concat(blocks))
  throw unknown(compression)
}

/** What compresses blocks of data; metadata stay as they are. Throws SquashfsError. */
export function pressOf(compression: number, blockSize: number): Press {
  if (compression !== zstd && compression !== xz) throw unknown(compression)
  // The kernel sets aside a dictionary of one block (squashfs/xz_wrapper.c).
  const xzFlags = ['--format=xz', '--check=crc32', '-T1', `--lzma2=preset=6,dict=${blockSize}`, '-c']
  return {
    compressor: { id: compression, pressSmall: (content) => content },
    async press(content) {
      const bytes = compression === zstd ? await Bun.zstdCompress(content, { level }) : await runXz(xzFlags, content)
      return bytes.length < content.length ? { bytes, compressed: true } : { bytes: content, compressed: false }
    },
  }
}

async function runXz(args: readonly string[], input: Uint8Array): Promise<Uint8Array> {
  try {
    await using child = Bun.spawn(['xz', ...args], {
      stdin: input,
      stdout: 'pipe',
      stderr: 'ignore',
      timeout: 60_000,
      maxBuffer: unpackedLimit,
    })
    const bytes = new Uint8Array(await new Response(child.stdout).arrayBuffer())
    if ((await child.exited) !== 0) throw new SquashfsError('the root file system of the release: a block that xz does not read')
    return bytes
  } catch (error) {
    if (failedWith(error, 'ENOENT'))
      throw new FactoryError(500, 'the release is packed with XZ, and "xz" is not installed here: install xz-utils')
    throw error
  }
}
