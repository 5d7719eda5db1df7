import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { newKey } from '../../src/pki/key.ts'
import { newSigningPair, signVariable } from '../../src/pki/secure-boot.ts'
import { explicit, oid, sequence } from '../../src/wire/der.ts'
import { toBeSigned } from '../../src/wire/efi/authenticated-variable.ts'
import { writeSignatureLists } from '../../src/wire/efi/signature-list.ts'

const owner = '77fa9abd-0359-4d32-bd60-28f4e78f784b'
const at = new Date('2026-03-04T05:06:07Z')
/** Keys of RSA take a fraction of a second each, so these two serve all tests. */
const [pair, other] = await Promise.all([newSigningPair('Signer', at), newSigningPair('Other', at)])

test('a list holds one certificate with its owner', () => {
  const { raw } = parseCertificate(pair.crt)
  const list = Buffer.from(writeSignatureLists([raw], owner))
  // EFI_CERT_X509_GUID as it lies in memory
  expect(list.subarray(0, 16).toString('hex')).toBe('a159c0a5e494a74a87b5ab155c2bf072')
  expect([list.readUInt32LE(16), list.readUInt32LE(20), list.readUInt32LE(24)]).toEqual([list.length, 0, list.length - 28])
  expect(list.subarray(28, 44).toString('hex')).toBe('bd9afa775903324dbd6028f4e78f784b')
  expect(Buffer.compare(list.subarray(44), raw)).toBe(0)
})

test('a variable is signed so that openssl agrees, over name, vendor, attributes, time and contents', () => {
  const contents = writeSignatureLists([parseCertificate(pair.crt).raw], owner)
  const variable = Buffer.from(signVariable('db', contents, pair, at))
  expect(variable.subarray(0, 16).toString('hex')).toBe('ea070304050607000000000000000000')
  const length = variable.readUInt32LE(16)
  expect([variable.readUInt16LE(20), variable.readUInt16LE(22)]).toEqual([0x0200, 0x0ef1])
  expect(Buffer.compare(variable.subarray(16 + length), contents)).toBe(0)

  const folder = mkdtempSync(join(tmpdir(), 'ichor-signed-'))
  try {
    const file = (name: string, content: string | Uint8Array) => {
      writeFileSync(join(folder, name), content)
      return join(folder, name)
    }
    const signed = sequence(oid('1.2.840.113549.1.7.2'), explicit(0, variable.subarray(16 + 24, 16 + length)))
    const judge = (over: Uint8Array) =>
      spawnSync('openssl', [
        ...['smime', '-verify', '-binary', '-inform', 'DER', '-in', file('signature', signed), '-content', file('content', over)],
        ...['-CAfile', file('ca.pem', pair.crt), '-purpose', 'any', '-out', '/dev/null'],
      ]).status
    expect(judge(toBeSigned('db', at, contents))).toBe(0)
    expect(judge(toBeSigned('KEK', at, contents))).not.toBe(0)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a key that does not belong to the certificate, or of a kind that firmware does not accept, is refused', () => {
  expect(() => signVariable('PK', new Uint8Array(), { crt: pair.crt, key: other.key })).toThrow('it is not the key of the certificate')
  expect(() => signVariable('PK', new Uint8Array(), { crt: pair.crt, key: newKey('ed25519').pem })).toThrow(
    'firmware takes signatures of RSA keys',
  )
})
