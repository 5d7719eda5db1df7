import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { formatManifest } from '../../../../src/oci/image-manifest.ts'
import { tarPadding } from '../../../../src/wire/tar/format.ts'
import { tarEnd, tarHeader } from '../../../../src/wire/tar/write.ts'

/** A key that images are signed with, and its public half as machines have it. */
export function signingKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const x = publicKey.export({ format: 'jwk' }).x ?? ''
  return { privateKey, publicKey: `${Buffer.from(x, 'base64url').toString('base64')}\n` }
}

type Key = ReturnType<typeof signingKey>

const sha256 = (bytes: Uint8Array | string) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

/** The files of a small release by name, signed. */
export function releaseFiles(
  version: string,
  key: Key,
  { arch = 'amd64', size = 5000, kubernetes = 'v1.36.3', encryption = [] as readonly string[] } = {},
): Map<string, Buffer> {
  const names = ['vmlinuz', 'initramfs.xz', 'vmlinuz.efi', 'systemd-boot.efi', 'root.sqsh', 'grub/core.img']
  const files = new Map(names.map((name) => [name, Buffer.alloc(size, `${name} ${version};`)]))
  // Here the first sector has its list of blocks, which ends with zeros.
  files.get('grub/core.img')?.fill(0, 400, 512)
  files.set('grub/boot.img', Buffer.alloc(512, 'b'))
  files.set('cmdline', Buffer.from('console=ttyS0 slab_nomerge pti=on\n'))
  const manifest = formatManifest({
    version,
    arch,
    kubernetes,
    kernel: '6.1.0-test',
    rootHash: sha256(`root ${version}`),
    encryption,
    files: [...files].map(([name, bytes]) => ({ name, size: bytes.length, sha256: sha256(bytes) })),
  })
  files.set('manifest', Buffer.from(manifest))
  files.set('manifest.sig', Buffer.from(`${sign(null, Buffer.from(manifest), key.privateKey).toString('base64')}\n`))
  return files
}

/** A tar archive of files. */
export function tarOf(files: ReadonlyMap<string, Uint8Array>): Buffer {
  const parts: Uint8Array[] = []
  for (const [path, bytes] of files)
    parts.push(tarHeader({ path, type: 'file', mode: 0o644, size: bytes.length }), bytes, tarPadding(bytes.length))
  return Buffer.concat([...parts, tarEnd])
}

/** A layer of an image in the form that a registry holds. */
export interface Layer {
  readonly files: ReadonlyMap<string, Uint8Array>
  readonly mediaType: string
  pack(tar: Buffer): Buffer
}

const plain = 'application/vnd.oci.image.layer.v1.tar'

/** Release files by their paths in an image. */
export const installed = (files: ReadonlyMap<string, Uint8Array>, arch = 'amd64'): Map<string, Uint8Array> =>
  new Map([...files].map(([name, bytes]) => [`usr/install/${arch}/${name}`, bytes]))

/** An installer image of release files as an OCI layout, file by file. */
export function installerLayout(files: ReadonlyMap<string, Uint8Array>, arch = 'amd64'): Map<string, Buffer> {
  return imageLayout([
    { layers: [{ files: installed(files, arch), mediaType: plain, pack: (tar) => tar }], platform: { os: 'linux', architecture: arch } },
  ])
}

/** An OCI layout with an index of images. */
export function imageLayout(images: readonly { layers: readonly Layer[]; platform?: object }[]): Map<string, Buffer> {
  const layout = new Map<string, Buffer>()
  const blob = (content: Buffer) => {
    const digest = sha256(content)
    layout.set(`blobs/sha256/${digest}`, content)
    return { digest: `sha256:${digest}`, size: content.length }
  }
  const json = (value: unknown) => Buffer.from(JSON.stringify(value))
  const manifests = images.map(({ layers, platform }) => {
    const packed = layers.map(({ files, mediaType, pack }) => ({ mediaType, ...blob(pack(tarOf(files))) }))
    return { ...blob(json({ schemaVersion: 2, config: blob(json({})), layers: packed })), ...(platform && { platform }) }
  })
  const index = blob(json({ schemaVersion: 2, manifests }))
  layout.set('oci-layout', json({ imageLayoutVersion: '1.0.0' }))
  layout.set('index.json', json({ schemaVersion: 2, manifests: [index] }))
  return layout
}

/** Writes files below a folder. */
export function writeTree(folder: string, files: ReadonlyMap<string, Uint8Array>): void {
  for (const [name, bytes] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), bytes)
  }
}
