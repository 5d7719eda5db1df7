import { expect, test } from 'bun:test'
import { generateKeyPairSync, sign } from 'node:crypto'
import { checkManifest, formatManifest, type ImageManifest, ManifestError, parseManifest } from '../../src/oci/image-manifest.ts'

const manifest: ImageManifest = {
  version: 'v1.13.0',
  arch: 'amd64',
  kubernetes: 'v1.36.3',
  kernel: '6.1.0-56-amd64',
  rootHash: 'ab'.repeat(32),
  files: [
    { name: 'vmlinuz', size: 8, sha256: '01'.repeat(32) },
    { name: 'grub/core.img', size: 0, sha256: '02'.repeat(32) },
  ],
}

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const key = Buffer.from(publicKey.export({ format: 'jwk' }).x!, 'base64url').toString('base64')
const bytes = Buffer.from(formatManifest(manifest))
const signature = `${sign(null, bytes, privateKey).toString('base64')}\n`

test('a formatted manifest parses to the same value', () => {
  expect(parseManifest(formatManifest(manifest))).toEqual(manifest)
  expect(parseManifest(`${formatManifest(manifest)}later something new\n`)).toEqual(manifest)
})

test('a release declares what encrypted volumes it opens', () => {
  const declared = { ...manifest, encryption: ['luks2'] }
  expect(formatManifest(declared)).toContain('\nencryption luks2\nfile ')
  expect(parseManifest(formatManifest(declared))).toEqual(declared)
  expect(parseManifest(`${formatManifest(manifest)}encryption ../x  \n`)).toEqual(manifest)
  expect(parseManifest(`${formatManifest(manifest)}encryption luks2 luks3\n`).encryption).toEqual(['luks2', 'luks3'])
})

test('a signed manifest is accepted, a modified one and one of another key are not', () => {
  expect(checkManifest(bytes, signature, `${key}\n`)).toEqual(manifest)
  const changed = Buffer.from(bytes)
  changed[10]! ^= 1
  expect(() => checkManifest(changed, signature, key)).toThrow('not signed with the key')
  const other = sign(null, bytes, generateKeyPairSync('ed25519').privateKey).toString('base64')
  expect(() => checkManifest(bytes, other, key)).toThrow('not signed with the key')
})

test.each([
  ['too short', signature.slice(0, 20), key, 'signature of the image: not 64 bytes in base64'],
  ['empty', '', key, 'signature of the image: not 64 bytes in base64'],
  ['a key too long', signature, `${key}AAAA`, 'public key of the image: not 32 bytes in base64'],
])('a signature that is none is refused: %s', (_, signed, by, message) => {
  expect(() => checkManifest(bytes, signed, by)).toThrow(message)
})

test.each([
  ['', '"version" is missing'],
  [formatManifest(manifest).replace(/^arch.*\n/m, ''), '"arch" is missing'],
  [formatManifest({ ...manifest, rootHash: 'xy' }), '"root-hash" is not a SHA-256'],
  [`${formatManifest(manifest)}version v2\n`, '"version" is present twice'],
  [`${formatManifest(manifest)}file ../etc/passwd 1 ${'01'.repeat(32)}\n`, 'is not "file <name> <size> <sha256>"'],
  [`${formatManifest(manifest)}file vmlinuz 1 ${'01'.repeat(32)}\n`, 'a file is listed twice'],
  [`${formatManifest(manifest)}file a ${'9'.repeat(13)} ${'01'.repeat(32)}\n`, 'is not "file'],
  ['x'.repeat(70_000), 'at most 65536'],
])('a manifest that is none is refused %#', (text, message) => {
  expect(() => parseManifest(text)).toThrow(message)
  expect(() => parseManifest(text)).toThrow(ManifestError)
})
