/**
 * A release with another command line: its kernel image, changed in place, the text `cmdline`, and the manifest over both, signed
 * again. Everything else of the release stays, byte by byte.
 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { Segment } from '../../../oci/image.ts'
import { parseManifest } from '../../../oci/image-manifest.ts'
import { bytesOf, patchSegments } from '../../../oci/segments.ts'
import { PeError, replaceSection } from '../../../wire/efi/pe.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { FactoryError } from '../factory-error.ts'
import { signatureLine } from '../image-key.ts'
import type { Release } from '../releases.ts'
import { readDocument, withFile } from './read-file.ts'

/** Bytes at an offset of a file. */
export interface Patch {
  readonly offset: number
  readonly bytes: Uint8Array
}

/** What a release has another of. */
export interface Derived {
  /** The manifest of the release itself, by which products recognise that they are of the same build. */
  readonly before: string
  /** Whole files of `/usr/install/<arch>/`. */
  readonly files: ReadonlyMap<string, Buffer>
  /** Where its `vmlinuz.efi` differs. */
  readonly uki: readonly Patch[]
}

/** Where the headers of a kernel image end at the latest. */
const headLimit = 64 << 10
/** The kernel image of a release. */
export const ukiFile = 'ichor-amd64.efi'

const damaged = (error: unknown) =>
  error instanceof PeError ? new FactoryError(500, `"${ukiFile}" of the release: ${messageOf(error)}`) : error

/** Where the kernel image differs with a command line, which no signature must cover. Throws FactoryError. */
function patchUki(release: Release, commandLine: string): Promise<Patch[]> {
  return withFile(release, ukiFile, async ({ size, read }) => {
    const head = Buffer.from(await read(0, Math.min(size, headLimit)))
    try {
      return replaceSection(head, size, { name: '.cmdline', content: Buffer.from(commandLine) })
    } catch (error) {
      throw damaged(error)
    }
  })
}

/** The kernel image alone with a command line: no signature of the release covers it. Throws FactoryError. */
export async function ukiSegments(release: Release, { line }: { line: string }): Promise<Segment[]> {
  const patches = await patchUki(release, line)
  return withFile(release, ukiFile, async ({ path, size }) => patchSegments([{ file: path, offset: 0, length: size }], patches))
}

/** The release with a command line. Throws FactoryError, also without a key or with another than that of the release. */
export async function deriveRelease(release: Release, commandLine: string, key: KeyObject | undefined): Promise<Derived> {
  const before = await readDocument(release, 'ichor-amd64.manifest')
  checkKey(before, await readDocument(release, 'ichor-amd64.manifest.sig'), key)
  const uki = await patchUki(release, commandLine)
  const cmdline = Buffer.from(`${commandLine}\n`)
  const changed = new Map([
    ['cmdline', await described([{ bytes: cmdline }])],
    ['vmlinuz.efi', await hashPatched(release, uki)],
  ])
  const manifest = Buffer.from(restated(before, changed))
  const files = new Map([
    ['cmdline', cmdline],
    ['manifest', manifest],
    ['manifest.sig', Buffer.from(signatureLine(manifest, key))],
  ])
  return { before, files, uki }
}

/** Machines accept a release of the key that their own has, so that another key would make an image that nothing can be upgraded to. */
export function checkKey(manifest: string, signature: string, key: KeyObject | undefined): asserts key is KeyObject {
  if (!key)
    throw new FactoryError(
      400,
      'the release is signed with its arguments: start the factory with --key and the key that mkimage.sh signed it with',
    )
  if (!verify(null, Buffer.from(manifest), createPublicKey(key), Buffer.from(signature.trim(), 'base64')))
    throw new FactoryError(500, 'the release is signed with another key than that of --key')
}

/** The manifest with other sizes and sums, and another root; lines that are not known here stay. */
export function restated(manifest: string, changed: ReadonlyMap<string, Description>, rootHash?: string): string {
  const lines = manifest.split('\n').map((line) => {
    const [key, name = ''] = line.split(' ')
    if (key === 'root-hash' && rootHash !== undefined) return `root-hash ${rootHash}`
    const now = key === 'file' ? changed.get(name) : undefined
    return now ? `file ${name} ${now.size} ${now.sha256}` : line
  })
  const text = lines.join('\n')
  const known = new Set(parseManifest(text).files.map(({ name }) => name))
  const missing = [...changed.keys()].find((name) => !known.has(name))
  if (missing) throw new FactoryError(500, `the manifest of the release does not list "${missing}"`)
  return text
}

const hashPatched = (release: Release, patches: readonly Patch[]): Promise<Description> =>
  withFile(release, ukiFile, ({ path, size }) => described(patchSegments([{ file: path, offset: 0, length: size }], patches)))

/** What a manifest states of a file. */
export interface Description {
  readonly size: number
  /** In hex. */
  readonly sha256: string
}

/** Reads a file to its end and describes it. */
export async function described(segments: readonly Segment[]): Promise<Description> {
  const hash = new Bun.CryptoHasher('sha256')
  let size = 0
  for await (const chunk of bytesOf(segments)) {
    hash.update(chunk)
    size += chunk.length
  }
  return { size, sha256: hash.digest('hex') }
}
