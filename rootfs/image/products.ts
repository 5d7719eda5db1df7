/** What a release is handed out as. */

import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { layerSegments } from '../../src/oci/layer.ts'
import { loaderFilesOf } from '../../src/os/lifecycle/slots/loader-renewal.ts'
import { makeEfiPartition } from '../../src/programs/factory/release/efi-partition.ts'
import { rootArchive } from '../../src/programs/factory/release/initramfs.ts'
import { rootName } from '../../src/programs/factory/root/verity.ts'
import { plainLayer, writeImageArchive } from '../../src/programs/talosctl/archive/image-archive.ts'
import { writeSegments } from '../../src/programs/talosctl/archive/write-segments.ts'
import { present } from '../build/present.ts'
import { assetsFolderOf, mediumMenu } from './grub.ts'
import type { CacheFile } from './image-cache.ts'
import { makeIso } from './iso.ts'
import { fileOf, type Release, sizeOf, version } from './release.ts'

/** Label of media. */
export const label = 'ICHOR'

/** A number for disks and file systems that follows from the release. */
export const serialOf = ({ verity }: Release): number => Number.parseInt(verity.rootHash.slice(16, 24), 16)

/** Variables of Secure Boot that systemd-boot may set, and when. */
export interface Enrollment {
  how: 'if-safe' | 'force' | 'off'
  files: readonly { name: string; content: Buffer }[]
}

// systemd-boot 252 has no `if-safe`; the interactive mode is its safe alternative.
const enrollModes = { 'if-safe': 'manual', force: 'force', off: 'off' } as const

/** Settings of systemd-boot (loader.conf(5)). */
export const loaderSettings = ({ how }: Enrollment, timeout: number): string =>
  `timeout ${timeout}\neditor no\nauto-firmware yes\nsecure-boot-enroll ${enrollModes[how]}\n`

/** Bytes for the menu of GRUB with two command lines as long as the kernel takes them: an image factory adds parameters in place. */
const menuRoom = 6144

/** What GRUB looks for on its medium. */
const menuFiles = ({ commandLine, marker, verity }: Release) => [
  { path: 'boot/grub/grub.cfg', content: Buffer.from(mediumMenu(version, commandLine, marker)), room: menuRoom },
  { path: `boot/grub/${marker}`, content: Buffer.from(`${verity.rootHash}\n`) },
]

/** The ISO. */
export async function writeIso(path: string, release: Release, enrollment: Enrollment, cache: readonly CacheFile[] = []): Promise<void> {
  const serial = serialOf(release)
  const efi = `${path}.efi`
  const uki = fileOf(release, 'vmlinuz.efi')
  const onEfi = {
    loader: loaderFilesOf(release.target.arch).loader.slice(1),
    uki: `EFI/Linux/ichor-${version}.efi`,
    root: `ichor/${rootName(release.verity)}`,
  }
  try {
    const { size, offsets } = await makeEfiPartition(
      efi,
      [
        { path: onEfi.loader, content: fileOf(release, 'systemd-boot.efi') },
        { path: 'loader/loader.conf', content: Buffer.from(loaderSettings(enrollment, 3)) },
        ...enrollment.files.map(({ name, content }) => ({ path: `loader/keys/auto/${name}`, content })),
        { path: onEfi.uki, content: uki },
        { path: onEfi.root, content: fileOf(release, 'root.sqsh') },
      ],
      { label, serial },
    )
    const offsetOf = (path: string) => present(offsets.get(path), `"${path}" of the EFI system partition`)
    const root = { offset: offsetOf(onEfi.root), size: sizeOf(release, 'root.sqsh') }
    const shared = new Map<string, { offset: number; size: number }>([
      ['root.sqsh', root],
      ['vmlinuz.efi', { offset: offsetOf(onEfi.uki), size: uki.length }],
      ['systemd-boot.efi', { offset: offsetOf(onEfi.loader), size: sizeOf(release, 'systemd-boot.efi') }],
    ])
    for (const name of ['vmlinuz', 'initramfs.xz']) {
      const content = fileOf(release, name)
      const within = uki.indexOf(content)
      if (within >= 0) shared.set(name, { offset: offsetOf(onEfi.uki) + within, size: content.length })
    }
    const files = [
      { path: `ichor/${rootName(release.verity)}`, content: root },
      ...(release.grub ? menuFiles(release) : []),
      ...release.names.map((name) => ({
        path: `${assetsFolderOf(release.target)}/${name}`,
        content: shared.get(name) ?? fileOf(release, name),
      })),
      ...cache.map(({ path: each, file, size }) => ({ path: `imagecache/${each}`, content: { file, size } })),
    ]
    await writeSegments(path, makeIso({ label, files, grub: release.grub, efi: { file: efi, size }, serial }))
  } finally {
    rmSync(efi, { force: true })
  }
}

/** The initramfs for machines started through a network: the root follows the rest. */
export async function writeNetworkInitramfs(path: string, release: Release): Promise<void> {
  const { before, after } = rootArchive(release.verity)
  await writeSegments(path, [
    { bytes: fileOf(release, 'initramfs.xz') },
    { bytes: before },
    { file: join(release.folder, 'root.sqsh'), offset: 0, length: sizeOf(release, 'root.sqsh') },
    { bytes: after },
  ])
}

/** The installer: an OCI image as one archive, its layer uncompressed. */
export async function writeInstaller(path: string, release: Release): Promise<void> {
  const assetsFolder = assetsFolderOf(release.target)
  const folders = ['usr', 'usr/install', assetsFolder, ...(release.grub ? [`${assetsFolder}/grub`] : [])]
  const layer = layerSegments([
    ...folders.map((each) => ({ path: each, type: 'dir' as const, mode: 0o755 })),
    ...release.names.map((name) => ({
      path: `${assetsFolder}/${name}`,
      type: 'file' as const,
      mode: 0o644,
      size: sizeOf(release, name),
      source: join(release.folder, name),
    })),
  ])
  const annotations = { 'org.opencontainers.image.version': version }
  await writeImageArchive(path, { arch: release.target.arch, layers: [await plainLayer(layer)], config: { config: {} }, annotations })
}

/** For checks of what was written. */
export const readWhole = (path: string): Buffer => readFileSync(path)
