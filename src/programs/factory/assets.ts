/** What of an image is served under which name, as it is in the release or as it is built of it. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import type { Segment } from '../../oci/image.ts'
import { parseManifest } from '../../oci/image-manifest.ts'
import { CommandLineError, extendCommandLine } from '../../oci/kernel-command-line.ts'
import { codeOf } from '../../wire/errno.ts'
import { type Derived, deriveRelease, ukiSegments } from './build/derived.ts'
import { type DiskOrder, diskFile, diskSegments, firmwareOf } from './build/disk.ts'
import { installerSegments } from './build/installer.ts'
import { isoSegments } from './build/iso.ts'
import { readDocument, stampOf } from './build/read-file.ts'
import { writeFile } from './build/write-file.ts'
import { FactoryError } from './factory-error.ts'
import { compress, conversions } from './formats/convert.ts'
import { metaParameter } from './meta-parameter.ts'
import { fileNameOf, namesOf, pathOf, type Release } from './releases.ts'
import type { Schematic } from './schematic.ts'
import { remadeRelease, type Workshop } from './workshop.ts'

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
  ...Object.keys(conversions).map((file) => [file.replace('ichor-amd64', 'PLATFORM-ARCH'), file] as const),
  ['PLATFORM-ARCH-uki.efi', 'ichor-amd64.efi'],
  ['installer-ARCH.tar', 'ichor-installer-amd64.tar'],
]

/** What a file is for, of those that people download. */
const purposes: Readonly<Record<string, string>> = {
  'PLATFORM-ARCH.iso': 'A USB stick, a CD or a virtual machine: starts to maintenance mode',
  'PLATFORM-ARCH.raw': 'A disk that has the system installed; imported by most clouds',
  'PLATFORM-ARCH.qcow2': 'The same for QEMU, Proxmox and OpenStack',
  'PLATFORM-ARCH.vhd': 'Azure',
  'PLATFORM-ARCH.raw.tar.gz': 'Google Cloud',
  'PLATFORM-ARCH.ova': 'VMware, imported as a whole machine',
  'PLATFORM-ARCH.vmdk': 'VMware and VirtualBox, as a disk',
  'PLATFORM-ARCH-uki.efi': 'A boot loader of UEFI, or HTTP boot',
  'installer-ARCH.tar': 'The installer for a registry of your own',
  'kernel-ARCH': 'Network boot',
  'initramfs-ARCH.xz': 'Network boot',
  'cmdline-PLATFORM-ARCH': 'The kernel arguments of network boot',
}

interface Order {
  /** The command line of the release, and the other one. */
  readonly base: string
  readonly line: string
  readonly meta: DiskOrder['meta']
  readonly key: KeyObject | undefined
}

/** Files that only releases for amd64 have: the machine of an OVA is described for one processor. */
const onlyAmd64: readonly string[] = ['ichor-amd64.ova']

/** The files that a release may have, by the names of the imager. */
const filesOf = ({ arch }: Release) => files.filter(([, file]) => arch === 'amd64' || !onlyAmd64.includes(file))

/** How the files are built that have a command line. */
const products: Readonly<Record<string, (release: Release, order: Order) => Promise<Segment[]>>> = {
  'ichor-amd64.iso': async (release, { base, line, key }) => isoSegments(release, await deriveRelease(release, line, key), { base, line }),
  'ichor-installer-amd64.tar': async (release, { line, key }) => derivedInstaller(release, await deriveRelease(release, line, key)),
  [diskFile]: diskSegments,
  'ichor-amd64.efi': ukiSegments,
}

function derivedInstaller(release: Release, { before, files: changed, uki }: Derived): Promise<Segment[]> {
  const contents = new Map([...changed].map(([file, bytes]) => [file, [{ bytes }]]))
  return installerSegments(release, { before, contents, uki })
}

/** The asset of a name as in `kernel-amd64`, which is built when the schematic has arguments. Throws FactoryError. */
export async function assetOf(workshop: Workshop, release: Release, schematic: Schematic, name: string): Promise<Asset> {
  const [, line = ''] = /^cmdline-([a-z0-9-]{1,64})$/.exec(name) ?? []
  if (line !== '') return textAsset(name, `${bootParameters(release, schematic, line)}\n`)
  const platform = platformOf(parametersOf(release))
  const named = (wanted: string) =>
    filesOf(release).find(([pattern]) =>
      namesOf(release.arch).some((arch) => pattern.replace('PLATFORM', platform).replace('ARCH', arch) === wanted),
    )
  const [, stem = name, ending] = /^(.+\.(?:raw|qcow2|vhd))(\.zst|\.gz)$/.exec(name) ?? []
  const found = named(stem)
  if (!found) {
    const known = [...filesOf(release).map(([pattern]) => pattern), 'cmdline-PLATFORM-ARCH'].join(', ')
    const names = known.replaceAll('PLATFORM', platform).replaceAll('ARCH', release.arch)
    throw new FactoryError(404, `image "${name.slice(0, 100)}" is not one of ${names}`)
  }
  const [, file] = found
  if (file !== 'ichor-vmlinuz') refuseContent(schematic)
  const path = await fileOf(workshop, release, schematic, file)
  if (ending !== '.zst' && ending !== '.gz') return fileAsset(name, path)
  fileIn(path)
  const build = (to: string, signal: AbortSignal) => compress(to, path, ending, signal)
  return fileAsset(name, await workshop.builds.take([ending, await stampOf(path)], build))
}

/** The path of a file of the release, or of the one that was built in its place. */
async function fileOf(workshop: Workshop, release: Release, schematic: Schematic, file: string): Promise<string> {
  if (conversions[file]) return convertedDisk(workshop, release, schematic, file)
  const product = products[file]
  const parameters = parametersOf(release)
  const line = lineOf(parameters, schematic, file === 'ichor-amd64.iso')
  const base = parameters.join(' ')
  if (file === 'ichor-vmlinuz') return pathOf(release, file)
  const made = await remadeRelease(workshop, release, schematic, { base, line: product ? line : base })
  return productOf(workshop, made, { file, line, meta: file === diskFile ? (schematic.customization.meta ?? []) : [] })
}

/** The path of a file of a release with a command line, and with values of META. */
async function productOf(
  { builds, signers: { key } }: Workshop,
  release: Release,
  { file, line, meta }: { file: string; line: string; meta: Order['meta'] },
): Promise<string> {
  const own = pathOf(release, file)
  const product = products[file]
  const base = parametersOf(release)
  if (!product || (line === base.join(' ') && meta.length === 0)) return own
  const stamps = await Promise.all(
    [file, 'ichor-amd64.efi', 'ichor-amd64.manifest', 'ichor-cmdline'].map((each) => stampOf(pathOf(release, each))),
  )
  const { x: signer = '' } = key ? createPublicKey(key).export({ format: 'jwk' }) : {}
  const build = async (path: string, signal: AbortSignal) =>
    writeFile(path, await product(release, { base: base.join(' '), line, meta, key }), signal)
  return builds.take([file, line, JSON.stringify(meta), signer, ...stamps], build)
}

/** The release whose parts are in the images of a schematic: with its extensions. Throws FactoryError. */
export function extendedRelease(workshop: Workshop, release: Release, schematic: Schematic): Promise<Release> {
  const base = parametersOf(release).join(' ')
  return remadeRelease(workshop, release, schematic, { base, line: base })
}

/** A disk in another format: as it is in the release, when the schematic changes nothing, or from the raw one. */
async function convertedDisk(workshop: Workshop, release: Release, schematic: Schematic, file: string): Promise<string> {
  const own = pathOf(release, file)
  const raw = await fileOf(workshop, release, schematic, diskFile)
  if (raw === pathOf(release, diskFile) && existsSync(own)) return own
  fileIn(raw)
  const build = async (path: string) => {
    const { rootHash } = parseManifest(await readDocument(release, 'ichor-amd64.manifest'))
    await conversions[file]?.(path, raw, { version: release.version, rootHash, firmware: await firmwareOf(release) })
  }
  return workshop.builds.take([file, await stampOf(raw)], build)
}

/** The kernel command line for machines started through the network, of `platform-arch`. Throws FactoryError. */
export function bootParameters(release: Release, schematic: Schematic, platformAndArch: string): string {
  const base = parametersOf(release)
  const platform = platformOf(base)
  if (!namesOf(release.arch).some((arch) => platformAndArch === `${platform}-${arch}`))
    throw new FactoryError(404, `"${platformAndArch.slice(0, 64)}": this release is for ${platform}-${release.arch}`)
  refuseContent(schematic)
  return lineOf(base, schematic, true)
}

/** The command line of a schematic, with its values of META where no partition holds them. Throws FactoryError. */
function lineOf(base: readonly string[], { customization: { extraKernelArgs = [], meta = [] } }: Schematic, withMeta: boolean): string {
  try {
    const values = withMeta && meta.length > 0 ? [metaParameter(meta)] : []
    return extendCommandLine(base, [...extraKernelArgs, ...values], platformOf(base))
  } catch (error) {
    if (error instanceof CommandLineError) throw new FactoryError(400, error.message)
    throw error
  }
}

const longestLine = 4096

function parametersOf(release: Release): string[] {
  const { path, size } = fileIn(pathOf(release, 'ichor-cmdline'))
  if (size > longestLine)
    throw new FactoryError(
      500,
      `"${fileNameOf(release, 'ichor-cmdline')}" of the release has ${size} bytes, a command line has at most 2048`,
    )
  return readFileSync(path, 'utf8').trim().split(/\s+/)
}

const platformOf = (parameters: readonly string[]) =>
  parameters.findLast((each) => each.startsWith('talos.platform='))?.slice('talos.platform='.length) ?? 'metal'

/** Refuses what an image that is built does not have. */
function refuseContent({ customization, overlay }: Schematic): void {
  const { embeddedMachineConfiguration, bootloader, secureboot, diskImage } = customization
  const wanted = Object.entries({
    overlay: overlay.image || overlay.name,
    embeddedMachineConfiguration,
    bootloader,
    secureboot: secureboot?.enrollKeys || secureboot?.includeWellKnownCertificates,
    diskImage: diskImage?.sectorSize,
  }).flatMap(([key, value]) => (value ? [key] : []))
  if (wanted.length > 0)
    throw new FactoryError(400, `the schematic has ${wanted.join(', ')}, which this factory cannot add: build the image with mkimage.sh`)
}

/** The names that a release has a file for, and what they are for. */
export function offersOf(release: Release): { name: string; purpose: string }[] {
  const platform = platformOf(parametersOf(release))
  return Object.entries(purposes).flatMap(([pattern, purpose]) => {
    const [, file = 'ichor-cmdline'] = files.find(([each]) => each === pattern) ?? []
    if (release.arch !== 'amd64' && onlyAmd64.includes(file)) return []
    const name = pattern.replace('PLATFORM', platform).replace('ARCH', release.arch)
    const sources = conversions[file] ? [file, diskFile] : [file]
    return sources.some((each) => existsSync(pathOf(release, each))) ? [{ name, purpose }] : []
  })
}

/** The platform and architecture of a release, as in `metal-amd64`. Throws FactoryError where the schematic cannot be had for it. */
export function platformArchitecture(release: Release, schematic: Schematic): string {
  const name = `${platformOf(parametersOf(release))}-${release.arch}`
  bootParameters(release, schematic, name)
  return name
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
