/** What of an image is served under which name, and what it must be without. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Segment } from '../../oci/image.ts'
import { CommandLineError, extendCommandLine } from '../../oci/kernel-command-line.ts'
import { codeOf } from '../../wire/errno.ts'
import { FactoryError } from './factory-error.ts'
import type { Release } from './releases.ts'
import type { Schematic } from './schematic.ts'

/** Something to download. */
export interface Asset {
  readonly name: string
  readonly content: Segment
  readonly size: number
  /** Other content has another one; with the quotes of HTTP. */
  readonly etag: string
}

/** Names of the imager, and the file of a release with those bytes; PLATFORM is that of the release. */
const files: readonly (readonly [name: string, file: string])[] = [
  ['kernel-ARCH', 'ichor-vmlinuz'],
  ['initramfs-ARCH.xz', 'ichor-initramfs'],
  ['initramfs-PLATFORM-ARCH.xz', 'ichor-initramfs'],
  ['PLATFORM-ARCH.iso', 'ichor-amd64.iso'],
  ['PLATFORM-ARCH.raw', 'ichor-amd64.raw'],
  ['PLATFORM-ARCH.qcow2', 'ichor-amd64.qcow2'],
  ['PLATFORM-ARCH-uki.efi', 'ichor-amd64.efi'],
  ['installer-ARCH.tar', 'ichor-installer-amd64.tar'],
]

/** Names of the one architecture, those of iPXE included. */
const architectures = ['amd64', 'x86_64', 'i386']

/** The asset of a name as in `kernel-amd64`. Throws FactoryError. */
export function assetOf(release: Release, schematic: Schematic, name: string): Asset {
  const [, line = ''] = /^cmdline-([a-z0-9-]{1,64})$/.exec(name) ?? []
  if (line !== '') return textAsset(name, `${bootParameters(release, schematic, line)}\n`)
  const platform = platformOf(parametersOf(release))
  const found = files.find(([pattern]) =>
    architectures.some((arch) => pattern.replace('PLATFORM', platform).replace('ARCH', arch) === name),
  )
  if (!found) {
    const known = [...files.map(([pattern]) => pattern), 'cmdline-PLATFORM-ARCH'].join(', ')
    const names = known.replaceAll('PLATFORM', platform).replaceAll('ARCH', 'amd64')
    throw new FactoryError(404, `image "${name.slice(0, 100)}" is not one of ${names}`)
  }
  const [, file] = found
  if (file !== 'ichor-vmlinuz') refuseContent(schematic)
  if (!['ichor-vmlinuz', 'ichor-initramfs'].includes(file)) refuseParameters(schematic, name)
  return fileAsset(name, join(release.folder, file))
}

/** The kernel command line for machines started through the network, of `platform-arch`. Throws FactoryError. */
export function bootParameters(release: Release, schematic: Schematic, platformAndArch: string): string {
  const base = parametersOf(release)
  const platform = platformOf(base)
  if (!architectures.some((arch) => platformAndArch === `${platform}-${arch}`))
    throw new FactoryError(404, `"${platformAndArch.slice(0, 64)}": this release is for ${platform}-amd64`)
  refuseContent(schematic)
  try {
    return extendCommandLine(base, schematic.customization.extraKernelArgs ?? [], platform)
  } catch (error) {
    if (error instanceof CommandLineError) throw new FactoryError(400, error.message)
    throw error
  }
}

const longestLine = 4096

function parametersOf({ folder }: Release): string[] {
  const { path, size } = fileIn(join(folder, 'ichor-cmdline'))
  if (size > longestLine) throw new FactoryError(500, `"ichor-cmdline" of the release has ${size} bytes, a command line has at most 2048`)
  return readFileSync(path, 'utf8').trim().split(/\s+/)
}

const platformOf = (parameters: readonly string[]) =>
  parameters.findLast((each) => each.startsWith('talos.platform='))?.slice('talos.platform='.length) ?? 'metal'

/** Refuses what an image that is built does not have. */
function refuseContent({ customization, overlay }: Schematic): void {
  const { embeddedMachineConfiguration, meta, systemExtensions, bootloader, secureboot, diskImage } = customization
  const wanted = Object.entries({
    overlay: overlay.image || overlay.name,
    embeddedMachineConfiguration,
    meta: meta?.length,
    systemExtensions: systemExtensions?.officialExtensions?.length,
    bootloader,
    secureboot: secureboot?.enrollKeys || secureboot?.includeWellKnownCertificates,
    diskImage: diskImage?.sectorSize,
  }).flatMap(([key, value]) => (value ? [key] : []))
  if (wanted.length > 0)
    throw new FactoryError(400, `the schematic has ${wanted.join(', ')}, which this factory cannot add: build the image with mkimage.sh`)
}

/** Refuses a command line of its own where it is part of what the release has signed. */
function refuseParameters({ customization }: Schematic, name: string): void {
  if (!customization.extraKernelArgs?.length) return
  const how = 'build the image with "mkimage.sh --extra-kernel-arg", or start machines through /pxe'
  throw new FactoryError(400, `the schematic has extraKernelArgs, which are signed within "${name}": ${how}`)
}

function fileIn(path: string): { path: string; size: number; changed: number; inode: number } {
  try {
    const { size, mtimeMs, ino } = statSync(path)
    return { path, size, changed: mtimeMs, inode: ino }
  } catch (error) {
    throw new FactoryError(404, `the release has no "${path.slice(path.lastIndexOf('/') + 1)}" (${codeOf(error)}): make it with mkimage.sh`)
  }
}

function fileAsset(name: string, path: string): Asset {
  const { size, changed, inode } = fileIn(path)
  return { name, size, content: { file: path, offset: 0, length: size }, etag: tagOf(`${path} ${size} ${changed} ${inode}`) }
}

function textAsset(name: string, text: string): Asset {
  const bytes = Buffer.from(text)
  return { name, size: bytes.length, content: { bytes }, etag: tagOf(text) }
}

const tagOf = (text: string) => `"${new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 32)}"`
