/** A small release with the products that mkimage.sh makes of one. */
import type { KeyObject } from 'node:crypto'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Arch, targets } from '../../../rootfs/build/target.ts'
import { writeInstaller, writeIso } from '../../../rootfs/image/products.ts'
import { type Release, version } from '../../../rootfs/image/release.ts'
import { BlockPress } from '../../../rootfs/squashfs/blocks.ts'
import { zstd } from '../../../rootfs/squashfs/compressor.ts'
import { formatManifest } from '../../../src/oci/image-manifest.ts'
import { publicLine, signatureLine } from '../../../src/programs/factory/image-key.ts'
import { trustArchive } from '../../../src/programs/factory/release/initramfs.ts'
import { makeUki } from '../../../src/programs/factory/release/uki.ts'
import { Tree } from '../../../src/programs/factory/root/tree.ts'
import { appendVerity, type Verity } from '../../../src/programs/factory/root/verity.ts'
import { writeSquashfs } from '../../../src/programs/factory/root/writer.ts'
import { parseModule } from '../../../src/wire/modules/module-file.ts'
import { moduleTables } from '../../../src/wire/modules/tables.ts'
import { moduleName } from '../../../src/wire/modules-dep.ts'
import { program } from '../../rootfs/program.ts'
import { builtModule, family, order } from '../../wire/modules/built-module.ts'
import { releaseKey } from './served.ts'

export { publicLine, version }

/** The command line of the release. */
export const line = 'talos.platform=metal console=tty0 pti=on panic=10 gpt'
/** Its kernel. */
export const kernelRelease = '6.1.0'
const rootHash = 'ab'.repeat(32)
const hashOf = (content: Buffer) => new Bun.CryptoHasher('sha256').update(content).digest('hex')

/** The kernel image with a command line. */
export const uki = (
  commandLine: string,
  initramfs: Buffer = Buffer.alloc(5000, 7),
  { stub = program(), pcrKey }: { stub?: Buffer; pcrKey?: KeyObject } = {},
): Buffer => makeUki({ stub, osRelease: 'ID=ichor\n', commandLine, initramfs, kernel: program(0x900000), ...(pcrKey && { pcrKey }) })

/** What a release has besides its kernel image. */
export interface Inside {
  readonly initramfs: Buffer
  readonly root: Buffer
  readonly verity: Verity
  readonly stub?: Buffer
}

const inert: Inside = {
  initramfs: Buffer.alloc(5000, 7),
  root: Buffer.alloc(8192, 9),
  verity: { rootHash, salt: 'cd'.repeat(32), dataBlocks: 1, blocks: 2 },
}

/** A few modules, and the tables of them. */
export function kernelFiles(): Map<string, Uint8Array> {
  const modules = Object.entries(family).map(([path, built]) => ({ path, bytes: builtModule(built) }))
  const parsed = modules.map(({ path, bytes }) => ({ path, name: moduleName(path), file: parseModule(bytes) }))
  return new Map([
    ...modules.map(({ path, bytes }) => [path, bytes] as const),
    ...moduleTables(parsed, order),
    ['modules.order', Buffer.from(order)],
    ['modules.builtin', Buffer.from('kernel/fs/ext4/ext4.ko\n')],
  ])
}

/** A release with a root file system that can be read, packed with Zstandard or otherwise. */
export async function withRoot(
  folder: string,
  { compressor = zstd(3), blockSize = 128 << 10, kernel = kernelRelease, files = kernelFiles() } = {},
): Promise<Inside> {
  const path = join(folder, 'root')
  const tree = new Tree()
  tree.text('base', '/etc/extensions.yaml', '')
  tree.text('base', '/usr/bin/init', 'init '.repeat(100_000), 0o755)
  tree.text('base', '/usr/local/etc/own', 'own')
  tree.link('base', '/sbin', 'usr/bin')
  for (const [name, content] of files) tree.text('kernel', `/usr/lib/modules/${kernel}/${name}`, content)
  await writeSquashfs(path, tree.entries(), { blockSize, press: new BlockPress(join(folder, 'blocks'), compressor) })
  const verity = await appendVerity(path)
  const initramfs = Buffer.concat([Buffer.alloc(4096, 7), trustArchive(verity, publicLine(releaseKey))])
  return { initramfs, root: readFileSync(path), verity }
}

/** Fills a folder, with an ISO and an installer image; returns the release, whose files lie beside them. */
export async function writeProducts(
  folder: string,
  kernelImage = uki(line),
  arch: Arch = 'amd64',
  { initramfs, root, verity, stub = program() } = inert,
): Promise<Release> {
  const parts = join(folder, `.parts-${arch}`)
  const { suffix } = targets[arch]
  const contents: Record<string, Buffer> = {
    cmdline: Buffer.from(`${line}\n`),
    ...(arch === 'amd64' && { 'grub/boot.img': Buffer.alloc(512, 1) }),
    'initramfs.xz': initramfs,
    'root.sqsh': root,
    'systemd-boot.efi': Buffer.alloc(700, 3),
    'systemd-stub.efi': stub,
    vmlinuz: program(0x900000),
    'vmlinuz.efi': kernelImage,
  }
  const files = Object.entries(contents).map(([name, content]) => ({ name, size: content.length, sha256: hashOf(content) }))
  const { rootHash } = verity
  const manifest = Buffer.from(formatManifest({ version, arch, kubernetes: 'v1.36.3', kernel: kernelRelease, rootHash, files }))
  const signature = Buffer.from(signatureLine(manifest, releaseKey))
  mkdirSync(join(parts, 'grub'), { recursive: true })
  for (const [name, content] of Object.entries({ manifest, 'manifest.sig': signature, ...contents }))
    writeFileSync(join(parts, name), content)
  const release: Release = {
    folder: parts,
    target: targets[arch],
    names: ['manifest', 'manifest.sig', ...Object.keys(contents)],
    verity,
    ...(arch === 'amd64' && {
      grub: { medium: Buffer.alloc(5000, 0x90), hybrid: Buffer.alloc(512, 0xfa), boot: Buffer.alloc(512), core: Buffer.alloc(512) },
    }),
    ...{ commandLine: line, marker: `${rootHash.slice(0, 16)}.id` },
  }
  await writeIso(join(folder, `ichor-${arch}.iso`), release, { how: 'off', files: [] })
  await writeInstaller(join(folder, `ichor-installer-${arch}.tar`), release)
  const copies = {
    manifest: `${arch}.manifest`,
    'manifest.sig': `${arch}.manifest.sig`,
    cmdline: `cmdline${suffix}`,
    'vmlinuz.efi': `${arch}.efi`,
    vmlinuz: `vmlinuz${suffix}`,
    'initramfs.xz': `initramfs${suffix}`,
  }
  for (const [from, to] of Object.entries(copies)) copyFileSync(join(parts, from), join(folder, `ichor-${to}`))
  return release
}
