/**
 * A release of the system: the files in `/usr/install/<arch>/` of an installer image or boot medium. Opening it checks its
 * signature; `verify` then reads every file once and compares it with the manifest, before anything is written.
 */
import { checkManifest, type ImageManifest, ManifestError } from '../../../oci/image-manifest.ts'
import type { StatusName } from '../../../rpc/status.ts'
import { apiStatus } from '../../../wire/api-status.ts'
import type { SlotRelease } from '../slots/slot.ts'

/** Files by name, relative to `/usr/install/<arch>/`. */
export interface ReleaseFiles {
  /** Where the files come from, for messages. */
  readonly origin: string
  /** Size of a file in bytes; undefined if it does not exist. */
  size(name: string): number | undefined
  open(name: string): AsyncIterable<Uint8Array>
}

/** A release signed by a trusted key. `open` throws ReleaseError at the end of a file that differs from the manifest. */
export interface Release {
  readonly origin: string
  readonly manifest: ImageManifest
  /** First digits of the manifest's SHA-256. */
  readonly image: string
  size(name: string): number
  open(name: string): AsyncIterable<Uint8Array>
}

/** An unusable release; nothing was changed. */
export class ReleaseError extends Error {
  override name = 'ReleaseError'

  get [apiStatus](): StatusName {
    return 'FailedPrecondition'
  }
}

/** An image could not be pulled. */
export class ReleaseUnavailable extends ReleaseError {}

const documentLimit = 64 * 1024

/** Files required for an installation or upgrade. */
const needed: Readonly<Record<'systemd-boot' | 'grub', readonly string[]>> = {
  'systemd-boot': ['vmlinuz.efi', 'systemd-boot.efi', 'root.sqsh', 'cmdline'],
  grub: ['vmlinuz', 'initramfs.xz', 'grub/boot.img', 'grub/core.img', 'root.sqsh', 'cmdline'],
}

/** The files a release needs for a boot loader. */
export const filesFor = (kind: 'systemd-boot' | 'grub'): readonly string[] => needed[kind]

/** Checks signature, architecture and presence of all files. Throws ReleaseError. */
export async function openRelease(files: ReleaseFiles, publicKey: string, arch: string): Promise<Release> {
  const wrong = (why: string) => new ReleaseError(`image from ${files.origin}: ${why}; nothing was changed`)
  for (const name of ['manifest', 'manifest.sig']) {
    const size = files.size(name)
    if (size === undefined) throw wrong(`it has no "${name}", so it is not a signed image of this system`)
    if (size > documentLimit) throw wrong(`its "${name}" is too large`)
  }
  const text = await whole(files.open('manifest'))
  let manifest: ImageManifest
  try {
    manifest = checkManifest(text, Buffer.from(await whole(files.open('manifest.sig'))).toString('utf8'), publicKey)
  } catch (error) {
    if (error instanceof ManifestError) throw wrong(error.message)
    throw error
  }
  if (manifest.arch !== arch) throw wrong(`it is for ${manifest.arch}, this machine is ${arch}`)
  const sizes = new Map(manifest.files.map(({ name, size }) => [name, size]))
  for (const [name, size] of sizes) {
    const found = files.size(name)
    if (found !== size) throw wrong(found === undefined ? `"${name}" is missing` : `"${name}" has ${found} bytes instead of ${size}`)
  }
  const sums = new Map(manifest.files.map(({ name, sha256 }) => [name, sha256]))
  const image = new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 16)
  return {
    origin: files.origin,
    manifest,
    image,
    size(name) {
      const size = sizes.get(name)
      if (size === undefined) throw wrong(`its manifest does not list "${name}"`)
      return size
    },
    open: (name) => checked(files, name, sums.get(name)),
  }
}

/** Reads a file; throws at its end if it differs from the manifest, since its storage may have changed after the verification. */
async function* checked(files: ReleaseFiles, name: string, sha256: string | undefined): AsyncGenerator<Uint8Array> {
  const hash = new Bun.CryptoHasher('sha256')
  for await (const part of files.open(name)) {
    hash.update(part)
    yield part
  }
  if (hash.digest('hex') !== sha256) throw new ReleaseError(`image from ${files.origin}: "${name}" is damaged: take the image again`)
}

/** Reads these files once and compares them with the manifest. Throws ReleaseError. */
export async function verifyFiles(release: Release, names: readonly string[], report: (name: string) => void = () => {}): Promise<void> {
  for (const name of names) {
    report(name)
    try {
      for await (const _ of release.open(name)); // `open` verifies the file
    } catch (error) {
      if (!(error instanceof ReleaseError)) throw error
      throw new ReleaseError(`image from ${release.origin}: "${name}" is damaged; nothing was changed, take the image again`)
    }
  }
}

/** A release in the form a slot takes. */
export async function slotRelease(release: Release, parameters: readonly string[] = []): Promise<SlotRelease> {
  const own = Buffer.from(await whole(release.open('cmdline'))).toString('utf8')
  const { version, rootHash, encryption, files } = release.manifest
  const sums = new Map(files.map(({ name, sha256 }) => [name, sha256]))
  return {
    version,
    rootHash,
    image: release.image,
    ...(encryption && { encryption }),
    commandLine: mergeParameters(own, parameters),
    size: release.size,
    sha256: (name) => sums.get(name) ?? '',
    open: release.open,
  }
}

/** Appends this machine's parameters to the image's, without exact duplicates. */
export function mergeParameters(own: string, more: readonly string[]): string {
  const words = own.split(/\s+/).filter(Boolean)
  return [...words, ...more.filter((word) => !words.includes(word))].join(' ')
}

async function whole(parts: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = []
  let size = 0
  for await (const part of parts) {
    size += part.length
    if (size > documentLimit) throw new ReleaseError(`a document of the image is larger than ${documentLimit} bytes`)
    all.push(part)
  }
  return Buffer.concat(all)
}
