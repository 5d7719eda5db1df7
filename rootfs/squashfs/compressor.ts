/** The ways of compressing that SquashFS and we both know. */
import { run } from '../build/run.ts'
import { type Target, targets } from '../build/target.ts'

/** Compresses blocks; equal blocks give equal bytes. */
export interface Compressor {
  /** The format's number (squashfs_fs.h). */
  id: number
  /** Everything that determines the compressed bytes; the key of the block cache. */
  name: string
  press(content: Uint8Array): Promise<Uint8Array>
  /** For metadata, of at most 8 KiB. */
  pressSmall(content: Uint8Array): Uint8Array
}

/** Zstandard: reads at about 1 GB/s. Bun brings it along, so its version is Bun's. */
export function zstd(level: number): Compressor {
  return {
    id: 6,
    name: `zstd-${level}-${Bun.version}`,
    press: (content) => Bun.zstdCompress(content, { level }),
    pressSmall: (content) => Bun.zstdCompressSync(content, { level: 19 }),
  }
}

/**
 * XZ: a sixth smaller, and about ten times slower to read. Code for amd64 passes a filter first; Debian's kernel for
 * arm64 decodes without filters only (CONFIG_XZ_DEC_X86 is not set).
 */
export async function xz(blockSize: number, target: Target = targets.amd64): Promise<Compressor> {
  const version = (await run(['xz', '--version'])).match(/liblzma (\S+)/)?.[1] ?? 'unknown'
  // The kernel sets aside a dictionary of one block, and one of 8 KiB for metadata (squashfs/xz_wrapper.c).
  const command = (dictionary: number) => [
    'xz',
    '--format=xz',
    '--check=crc32',
    '-T1',
    ...target.xz,
    `--lzma2=preset=6e,lc=4,dict=${dictionary}`,
    '-c',
  ]
  return {
    id: 4,
    name: `xz${target.xz.map((filter) => filter.slice(1)).join('')}-6e-lc4-${blockSize}-${version}`,
    async press(content) {
      const child = Bun.spawn(command(blockSize), { stdin: content, stdout: 'pipe', stderr: 'inherit' })
      const bytes = new Uint8Array(await new Response(child.stdout).arrayBuffer())
      if ((await child.exited) !== 0) throw new Error('xz failed')
      return bytes
    },
    pressSmall(content) {
      const child = Bun.spawnSync(command(8192), { stdin: content, stderr: 'inherit' })
      if (child.exitCode !== 0) throw new Error('xz failed')
      return child.stdout
    },
  }
}
