import { afterAll, describe, expect, test } from 'bun:test'
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Glob } from 'bun'
import { readPcrKey } from '../../rootfs/image/secure-boot.ts'
import { imageMeasurement, policySignatures, stubVersion } from '../../src/programs/factory/release/pcr-policy.ts'
import { makeUki } from '../../src/programs/factory/release/uki.ts'
import { PeError, peSections } from '../../src/wire/efi/pe.ts'
import { parsePcrSignatures, parsePolicyKey } from '../../src/wire/tpm2/pcr-signatures.ts'
import { noSwtpm, startSwtpm } from '../support/swtpm.ts'
import { program, stubOf } from './program.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-pcr-policy-'))
afterAll(() => rmSync(folder, { recursive: true }))
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const content = (text: string) => Buffer.from(text)
const sections = [
  { name: '.osrel', content: content('ID=ichor\n') },
  { name: '.cmdline', content: content('quiet') },
  { name: '.initrd', content: content('an initramfs') },
  { name: '.linux', content: content('a kernel') },
  { name: '.pcrpkey', content: Buffer.from(createPublicKey(privateKey).export({ type: 'spki', format: 'pem' })) },
]

/** The judge, of Debian's package systemd. It has a TPM compute the policies. */
const measure = ['/usr/lib/systemd/systemd-measure', '/lib/systemd/systemd-measure'].find(existsSync)

/** What the judge loads to speak to the TPM. */
const hasTss = [...new Glob('*/libtss2-esys.so.0').scanSync({ cwd: '/usr/lib', followSymlinks: true })].length > 0

const missing = measure
  ? (noSwtpm ?? (hasTss ? undefined : 'libtss2-esys is not installed, it is in the package libtss2-esys-3.0.2-0'))
  : 'systemd-measure is not installed, it is in the package systemd'

describe.skipIf(missing !== undefined)(missing ?? 'systemd-measure', () => {
  test('signs the same policies', async () => {
    await using swtpm = await startSwtpm()
    const file = (name: string, bytes: Uint8Array | string) => {
      writeFileSync(join(folder, name), bytes)
      return join(folder, name)
    }
    const argv = [
      ...[measure ?? '', 'sign', '--phase=enter-initrd:leave-initrd:enter-machined', `--tpm2-device=${swtpm.tcti}`],
      ...['sha256', 'sha384', 'sha512'].map((bank) => `--bank=${bank}`),
      ...sections.map(({ name, content }) => `--${name.slice(1)}=${file(name, content)}`),
      `--private-key=${file('key.pem', privateKey.export({ type: 'pkcs1', format: 'pem' }))}`,
      `--public-key=${file('public.pem', sections[4]!.content)}`,
    ]
    const child = Bun.spawn(argv, { stdout: 'pipe', stderr: 'inherit' })
    const theirs = JSON.parse(await new Response(child.stdout).text())
    expect(await child.exited).toBe(0)
    expect(JSON.parse(policySignatures(privateKey, stubOf(252), sections).toString())).toEqual(theirs)
  })
})

test('an image carries its key, and signatures that no part of it depends on', () => {
  const parts = {
    stub: stubOf(252),
    osRelease: 'ID=ichor\n',
    commandLine: 'quiet',
    initramfs: content('initramfs'),
    kernel: program(),
    pcrKey: privateKey,
  }
  const image = makeUki(parts)
  const found = peSections(image)
  const text = (name: string) => {
    const { offset, size } = found.find((each) => each.name === name)!
    return image.toString('latin1', offset, offset + size)
  }
  expect(found.map(({ name }) => name)).toEqual(['.text', '.sdmagic', '.pcrsig', '.osrel', '.cmdline', '.pcrpkey', '.initrd', '.linux'])
  const { fingerprint } = parsePolicyKey(text('.pcrpkey'))
  const signatures = parsePcrSignatures(text('.pcrsig'))
  expect(Object.keys(signatures)).toEqual(['sha256', 'sha384', 'sha512'])
  expect(signatures.sha256?.map(({ pcrs, pkfp }) => ({ pcrs, pkfp }))).toEqual([{ pcrs: [11], pkfp: fingerprint }])
  expect(makeUki(parts).equals(image)).toBe(true)
  const other = parsePcrSignatures(
    policySignatures(privateKey, parts.stub, [{ name: '.cmdline', content: content('quiet init=/bin/sh') }]).toString(),
  )
  expect(other.sha256?.[0]?.pol).not.toBe(signatures.sha256?.[0]?.pol ?? '')
})

test('what is measured follows from the version of the stub', () => {
  const more = [...sections, { name: '.uname', content: content('6.1') }]
  const of = (version: number) => imageMeasurement('sha256', version, more).toString('hex')
  expect(of(252)).toBe(imageMeasurement('sha256', 252, sections).toString('hex'))
  expect(of(253)).not.toBe(of(252))
  expect(stubVersion(stubOf(257))).toBe(257)
  // Of arm64, where the mark is no section.
  expect(stubVersion(Buffer.concat([program(), Buffer.from('#### LoaderInfo: systemd-stub 252.39-1 ####')]))).toBe(252)
  expect(() => stubVersion(program())).toThrow(PeError)
})

test('a key that TPMs do not take is refused', () => {
  const path = join(folder, 'refused.pem')
  writeFileSync(path, 'none')
  expect(() => readPcrKey(path)).toThrow('no private key without a passphrase in PEM')
  writeFileSync(path, generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }))
  expect(() => readPcrKey(path)).toThrow('must be an RSA key of 2048 bits')
  writeFileSync(path, privateKey.export({ type: 'pkcs1', format: 'pem' }))
  expect(readPcrKey(path).asymmetricKeyType).toBe('rsa')
})
