/** A small release with the products that mkimage.sh makes of one. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Arch, targets } from '../../../rootfs/build/target.ts'
import { writeInstaller, writeIso } from '../../../rootfs/image/products.ts'
import { type Release, version } from '../../../rootfs/image/release.ts'
import { makeUki } from '../../../rootfs/image/uki/uki.ts'
import { formatManifest } from '../../../src/oci/image-manifest.ts'
import { publicLine, signatureLine } from '../../../src/programs/factory/image-key.ts'
import { program } from '../../rootfs/program.ts'
import { releaseKey } from './served.ts'

export { publicLine, version }

/** The command line of the release. */
export const line = 'talos.platform=metal console=tty0 pti=on panic=10 gpt'
const rootHash = 'ab'.repeat(32)
const hashOf = (content: Buffer) => new Bun.CryptoHasher('sha256').update(content).digest('hex')

/** The kernel image with a command line. */
export const uki = (commandLine: string): Buffer =>
  makeUki({ stub: program(), osRelease: 'ID=ichor\n', commandLine, initramfs: Buffer.alloc(5000, 7), kernel: program(0x900000) })

/** Fills a folder, with an ISO and an installer image; returns the release, whose files lie beside them. */
export async function writeProducts(folder: string, kernelImage = uki(line), arch: Arch = 'amd64'): Promise<Release> {
  const parts = join(folder, `.parts-${arch}`)
  const { suffix } = targets[arch]
  const contents: Record<string, Buffer> = {
    cmdline: Buffer.from(`${line}\n`),
    ...(arch === 'amd64' && { 'grub/boot.img': Buffer.alloc(512, 1) }),
    'initramfs.xz': Buffer.alloc(5000, 7),
    'root.sqsh': Buffer.alloc(8192, 9),
    'systemd-boot.efi': Buffer.alloc(700, 3),
    vmlinuz: program(0x900000),
    'vmlinuz.efi': kernelImage,
  }
  const files = Object.entries(contents).map(([name, content]) => ({ name, size: content.length, sha256: hashOf(content) }))
  const manifest = Buffer.from(formatManifest({ version, arch, kubernetes: 'v1.36.3', kernel: '6.1.0', rootHash, files }))
  const signature = Buffer.from(signatureLine(manifest, releaseKey))
  mkdirSync(join(parts, 'grub'), { recursive: true })
  for (const [name, content] of Object.entries({ manifest, 'manifest.sig': signature, ...contents }))
    writeFileSync(join(parts, name), content)
  const release: Release = {
    folder: parts,
    target: targets[arch],
    names: ['manifest', 'manifest.sig', ...Object.keys(contents)],
    verity: { rootHash, salt: 'cd'.repeat(32), dataBlocks: 1, blocks: 2 },
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
