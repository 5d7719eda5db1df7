/**
 * The signed manifest of a release: one `key value` per line, then `file <name> <size> <sha256>` for each file of
 * `/usr/install/<arch>/`. The signature is Ed25519 over the manifest's bytes; signature and key are written in base64.
 */
import { createPublicKey, verify } from 'node:crypto'

/** One file of a release. */
export interface ManifestFile {
  /** Relative to the directory of the manifest. */
  name: string
  size: number
  /** In hex. */
  sha256: string
}

/** A release. */
export interface ImageManifest {
  /** As in `v1.13.100`. */
  version: string
  arch: string
  kubernetes: string
  /** As printed by `uname -r`. */
  kernel: string
  /** Root hash of the tree over `root.sqsh`, in hex. */
  rootHash: string
  /** Kinds of encrypted volumes that it opens, as in `luks2`, and its PCR key, `pcr` and hexadecimal digits; absent from releases that do not declare any. */
  encryption?: readonly string[]
  files: ManifestFile[]
}

/** A malformed manifest or an invalid signature; the message names the problem. */
export class ManifestError extends Error {
  override name = 'ManifestError'
}

const limit = 64 * 1024
const fileLimit = 64
const keys = { version: 'version', arch: 'arch', kubernetes: 'kubernetes', kernel: 'kernel', 'root-hash': 'rootHash' } as const
type Key = keyof typeof keys

/** Formats a manifest. */
export function formatManifest(manifest: ImageManifest): string {
  const head = Object.entries(keys).map(([key, field]) => `${key} ${manifest[field]}\n`)
  if (manifest.encryption?.length) head.push(`encryption ${manifest.encryption.join(' ')}\n`)
  return [...head, ...manifest.files.map(({ name, size, sha256 }) => `file ${name} ${size} ${sha256}\n`)].join('')
}

/** Parses a manifest; unknown keys are ignored, so that later releases can add some. */
export function parseManifest(text: string): ImageManifest {
  if (text.length > limit) throw new ManifestError(`image manifest: ${text.length} characters, at most ${limit} are read`)
  const found = new Map<string, string>()
  const files: ManifestFile[] = []
  for (const line of text.split('\n')) {
    if (line === '') continue
    const [key = '', ...values] = line.split(' ')
    if (key === 'file') files.push(fileOf(line, values))
    else if (found.has(key)) throw new ManifestError(`image manifest: "${key}" is present twice`)
    else found.set(key, values.join(' '))
    if (files.length > fileLimit) throw new ManifestError(`image manifest: more than ${fileLimit} files`)
  }
  if (new Set(files.map(({ name }) => name)).size < files.length) throw new ManifestError('image manifest: a file is listed twice')
  const value = (key: Key) => {
    const present = found.get(key)
    if (!present) throw new ManifestError(`image manifest: "${key}" is missing`)
    return present
  }
  const fields = Object.entries(keys).map(([key, field]) => [field, value(key as Key)])
  const encryption = parseKinds(found.get('encryption'))
  const manifest = { ...(Object.fromEntries(fields) as Omit<ImageManifest, 'files'>), ...(encryption && { encryption }), files }
  if (!/^[0-9a-f]{64}$/.test(manifest.rootHash)) throw new ManifestError('image manifest: "root-hash" is not a SHA-256 in hex')
  return manifest
}

/** Words of lower-case letters and digits, separated by spaces; undefined if there is none. */
export function parseKinds(text: string | undefined): readonly string[] | undefined {
  const kinds = text?.split(' ').filter((word) => /^[a-z][a-z0-9]{0,15}$/.test(word)) ?? []
  return kinds.length > 0 ? kinds : undefined
}

function fileOf(line: string, values: readonly string[]): ManifestFile {
  const [name = '', size = '', sha256 = ''] = values
  const plain = /^[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/.test(name)
  if (values.length !== 3 || !plain || !/^\d{1,12}$/.test(size) || !/^[0-9a-f]{64}$/.test(sha256))
    throw new ManifestError(`image manifest: "${line.slice(0, 120)}" is not "file <name> <size> <sha256>"`)
  return { name, size: Number(size), sha256 }
}

/** Verifies the signature before parsing: an unsigned manifest is never parsed. */
export function checkManifest(manifest: Uint8Array, signature: string, publicKey: string): ImageManifest {
  const bytes = (what: string, text: string, size: number) => {
    const decoded = Buffer.from(text.trim(), 'base64')
    if (decoded.length !== size || decoded.toString('base64') !== text.trim())
      throw new ManifestError(`${what}: not ${size} bytes in base64`)
    return decoded
  }
  const x = bytes('public key of the image', publicKey, 32).toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  if (!verify(null, manifest, key, bytes('signature of the image', signature, 64)))
    throw new ManifestError('the image is not signed with the key that this system trusts: use an image of the same vendor')
  return parseManifest(Buffer.from(manifest.buffer, manifest.byteOffset, manifest.byteLength).toString('utf8'))
}
