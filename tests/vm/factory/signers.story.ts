/**
 * A release for Secure Boot with a PCR policy, whose kernel image the factory makes again for a schematic: signed with keys in files,
 * and with a key in a PKCS #11 token (SoftHSM). The judges are sbverify, OpenSSL, systemd-measure, and a machine that starts only what the
 * key signed.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { prepareHost } from '../../../rootfs/build/host.ts'
import { run } from '../../../rootfs/build/run.ts'
import { parseManifest } from '../../../src/oci/image-manifest.ts'
import { peSections } from '../../../src/wire/efi/pe.ts'
import { parsePcrSignatures } from '../../../src/wire/tpm2/pcr-signatures.ts'
import { readIso } from '../../rootfs/read-iso.ts'
import { freePort } from '../../support/free-port.ts'
import { startSwtpm } from '../../support/swtpm.ts'
import { forgetState, stateFolder, TestMachine, uefi } from '../machine.ts'
import { makeToken, type Token } from './token.ts'

const minutes = 60_000
const folder = stateFolder('signers')
const path = (name: string) => join(folder, name)
const root = join(import.meta.dir, '../../..')
let token: Token
let machine: TestMachine | undefined

beforeAll(async () => {
  await prepareHost([
    { name: 'sbsigntool', why: 'signs for Secure Boot, and judges that', shown: '/usr/bin/sbverify' },
    { name: 'openssl', why: 'makes keys, and judges signatures', shown: '/usr/bin/openssl' },
    { name: 'softhsm2', why: 'is a PKCS #11 token', shown: '/usr/bin/softhsm2-util' },
    { name: 'opensc', why: 'writes to the token, and reads from it', shown: '/usr/bin/pkcs11-tool' },
    {
      name: 'libengine-pkcs11-openssl',
      why: 'has sbsign use the token',
      shown: '/usr/lib/x86_64-linux-gnu/engines-3/pkcs11.so',
    },
    { name: 'systemd', why: 'judges PCR policies', shown: '/usr/lib/systemd/systemd-measure' },
    { name: 'libtss2-esys-3.0.2-0', why: 'has the judge speak to a TPM', shown: '/usr/lib/x86_64-linux-gnu/libtss2-esys.so.0' },
    { name: 'swtpm', why: 'is the TPM of the judge', shown: '/usr/bin/swtpm' },
  ])
  // What an ended run has left has other keys.
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { mode: 0o700 })
  await run(['openssl', 'genpkey', '-algorithm', 'ed25519', '-out', path('image.pem')])
  await run(['openssl', 'genpkey', '-algorithm', 'rsa', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', path('pcr.pem')])
  for (const name of ['sb', 'other']) {
    const subject = ['-subj', `/CN=Ichor test ${name}`, '-days', '3650', '-keyout', path(`${name}.key`), '-out', path(`${name}.crt`)]
    await run(['openssl', 'req', '-new', '-x509', '-newkey', 'rsa:2048', '-nodes', '-sha256', ...subject])
  }
  token = await makeToken(folder, path('sb.key'), path('sb.crt'))
  const keys = ['--key', path('image.pem'), '--pcr-key', path('pcr.pem'), '--sd-boot-enroll-keys', 'force']
  const secureBoot = ['--secure-boot-key', path('sb.key'), '--secure-boot-cert', path('sb.crt')]
  const products = ['--fast', '--only', 'iso,pxe', '--output', path('release')]
  await run([process.execPath, join(root, 'rootfs/image.ts'), ...products, ...keys, ...secureBoot])
}, 60 * minutes)
afterAll(async () => {
  await machine?.unplug()
  forgetState(folder)
})

/** Starts a factory over the release, and has it make the ISO of a schematic; its files are written to a folder. */
async function ordered(name: string, argument: string, flags: readonly string[], env: Record<string, string> = {}): Promise<Ordered> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const program = [process.execPath, join(root, 'src/main.ts'), 'factory', 'serve', '--listen', `127.0.0.1:${port}`]
  const keys = ['--key', path('image.pem'), '--pcr-key', path('pcr.pem')]
  const factory = Bun.spawn([...program, '--images', path('release'), ...keys, ...flags], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...env },
  })
  try {
    for (const until = performance.now() + minutes; ; await Bun.sleep(200)) {
      const healthy = await fetch(`${url}/healthz`).catch(() => undefined)
      if (healthy?.ok) break
      if (performance.now() > until) throw new Error('the factory does not answer')
    }
    const body = JSON.stringify({ customization: { extraKernelArgs: [argument] } })
    const { id } = (await (await fetch(`${url}/schematics`, { method: 'POST', body })).json()) as { id: string }
    const [version = ''] = (await (await fetch(`${url}/versions`)).json()) as string[]
    const get = async (file: string) => {
      const answer = await fetch(`${url}/image/${id}/${version}/${file}`)
      const bytes = Buffer.from(await answer.arrayBuffer())
      if (!answer.ok) throw new Error(bytes.toString())
      return bytes
    }
    const iso = await get('metal-amd64.iso')
    const { files } = readIso(iso)
    mkdirSync(path(name))
    writeFileSync(join(path(name), 'metal-amd64.iso'), iso)
    for (const file of ['vmlinuz.efi', 'manifest', 'manifest.sig'])
      writeFileSync(join(path(name), file), files.get(`usr/install/amd64/${file}`) ?? '')
    const uki = await get('metal-amd64-uki.efi')
    const sectionsOf = (image: Buffer) =>
      new Map(peSections(image).map(({ name: each, offset, size }) => [each, image.subarray(offset, offset + size)]))
    return { folder: path(name), uki, sections: sectionsOf(uki), before: sectionsOf(readFileSync(path('release/ichor-amd64.efi'))) }
  } finally {
    factory.kill()
    await factory.exited
  }
}

interface Ordered {
  readonly folder: string
  readonly uki: Buffer
  /** By name, in the image and in that of the release. */
  readonly sections: ReadonlyMap<string, Buffer>
  readonly before: ReadonlyMap<string, Buffer>
}

/** The signature for Secure Boot is of the certificate, and of no other. */
async function isSigned(uki: string): Promise<void> {
  expect(await run(['sbverify', '--cert', path('sb.crt'), uki])).toContain('Signature verification OK')
  await expect(run(['sbverify', '--cert', path('other.crt'), uki])).rejects.toThrow()
}

/** The manifest is that of the image key, and lists the kernel image. */
async function isListed({ folder: made, uki }: Ordered): Promise<void> {
  const manifest = readFileSync(join(made, 'manifest'), 'utf8')
  writeFileSync(join(made, 'signature'), Buffer.from(readFileSync(join(made, 'manifest.sig'), 'utf8'), 'base64'))
  const signed = ['-rawin', '-in', join(made, 'manifest'), '-sigfile', join(made, 'signature')]
  expect(await run(['openssl', 'pkeyutl', '-verify', '-inkey', path('image.pem'), ...signed])).toContain('Verified Successfully')
  const sha256 = new Bun.CryptoHasher('sha256').update(uki).digest('hex')
  expect(parseManifest(manifest).files.find(({ name }) => name === 'vmlinuz.efi')?.sha256).toBe(sha256)
  expect(readFileSync(join(made, 'vmlinuz.efi')).equals(uki)).toBe(true)
}

test(
  'with keys in files, the kernel image of a schematic is signed for Secure Boot, and its manifest lists it',
  async () => {
    const made = await ordered('files', 'ichor.order=files', ['--secure-boot-key', path('sb.key'), '--secure-boot-cert', path('sb.crt')])
    expect(made.sections.get('.cmdline')?.toString()).toEndWith(' ichor.order=files')
    expect(made.before.get('.cmdline')?.toString()).not.toContain('ichor.order')
    await isSigned(join(made.folder, 'vmlinuz.efi'))
    await isListed(made)
    // A byte of the command line that is another one leaves no valid signature.
    const changed = Buffer.from(made.uki)
    const { offset = 0 } = peSections(changed).find(({ name }) => name === '.cmdline') ?? {}
    changed[offset] = 0x20
    writeFileSync(path('changed.efi'), changed)
    await expect(run(['sbverify', '--cert', path('sb.crt'), path('changed.efi')])).rejects.toThrow()
    await isPolicy(made)
  },
  10 * minutes,
)

/** The PCR policy is the one that systemd-measure signs for these sections, and OpenSSL verifies it with the key of the release. */
async function isPolicy({ folder: made, sections, before }: Ordered): Promise<void> {
  const measured = ['.linux', '.osrel', '.cmdline', '.initrd', '.pcrpkey']
  const files = measured.map((name) => {
    writeFileSync(join(made, name.slice(1)), sections.get(name) ?? '')
    return `--${name.slice(1)}=${join(made, name.slice(1))}`
  })
  await run(['openssl', 'pkey', '-in', path('pcr.pem'), '-pubout', '-out', path('pcr.pub')])
  expect(sections.get('.pcrpkey')?.toString()).toBe(readFileSync(path('pcr.pub'), 'utf8'))
  await using swtpm = await startSwtpm()
  const banks = ['sha256', 'sha384', 'sha512'] as const
  const theirs = await run([
    ...['/usr/lib/systemd/systemd-measure', 'sign', '--phase=enter-initrd:leave-initrd:enter-machined', `--tpm2-device=${swtpm.tcti}`],
    ...banks.map((bank) => `--bank=${bank}`),
    ...[...files, `--private-key=${path('pcr.pem')}`, `--public-key=${path('pcr.pub')}`],
  ])
  const ours = sections.get('.pcrsig')?.toString() ?? ''
  expect(JSON.parse(ours)).toEqual(JSON.parse(theirs))
  expect(before.get('.pcrsig')?.toString()).not.toBe(ours)
  const signatures = parsePcrSignatures(ours)
  for (const bank of banks) {
    const [first] = signatures[bank] ?? []
    writeFileSync(join(made, 'policy'), Buffer.from(first?.pol ?? '', 'hex'))
    writeFileSync(join(made, 'policy.sig'), Buffer.from(first?.sig ?? '', 'base64'))
    const verify = ['openssl', 'dgst', `-${bank}`, '-verify', path('pcr.pub'), '-signature', join(made, 'policy.sig'), join(made, 'policy')]
    expect(await run(verify)).toContain('Verified OK')
  }
}

test(
  'with a key in a token, a command signs, and OpenSSL verifies the signature with the key that the token shows',
  async () => {
    const made = await ordered('token', 'ichor.order=token', ['--sign-command', token.command], token.environment)
    expect(made.sections.get('.cmdline')?.toString()).toEndWith(' ichor.order=token')
    const uki = join(made.folder, 'vmlinuz.efi')
    await isSigned(uki)
    await isListed(made)
    const { attributes, signature } = await signatureOf(uki)
    writeFileSync(path('attributes'), attributes)
    writeFileSync(path('attributes.sig'), signature)
    const verify = ['openssl', 'dgst', '-sha256', '-verify', await token.publicKey(), '-signature', path('attributes.sig')]
    expect(await run([...verify, path('attributes')])).toContain('Verified OK')
  },
  10 * minutes,
)

test.skipIf(!Bun.which('qemu-system-x86_64'))(
  'a machine with Secure Boot that trusts this certificate alone starts the image, with its argument',
  async () => {
    const log = path('console.log')
    console.log(`console: ${log}`)
    machine = await TestMachine.start({
      ...{ console: log, cdrom: path('token/metal-amd64.iso'), firmware: uefi(folder, true), restarts: true },
    })
    await machine.shows(/Command line: .*ichor\.order=token/, 30 * minutes)
    await machine.shows(/[Ss]ecure [Bb]oot( is)? enabled/, 5 * minutes)
    await machine.shows(/maintenance: waiting for a machine configuration/, 20 * minutes)
    const it = machine
    const state = await it.until(
      'the API answers',
      async () => {
        const { code, stdout, stderr } = await it.insecurely('get', 'securitystate', '-o', 'yaml')
        if (code !== 0) throw new Error(stderr)
        return stdout !== '' && stdout
      },
      10 * minutes,
    )
    expect(state).toMatch(/secureBoot: true/)
    await machine.unplug()
    machine = undefined
  },
  66 * minutes,
)

test(
  'without the PIN of the token the image is refused, and nothing is served in its place',
  async () => {
    writeFileSync(token.pinFile, '00000000')
    const failed = ordered('refused', 'ichor.order=refused', ['--sign-command', token.command], token.environment)
    await expect(failed).rejects.toThrow(/signing for Secure Boot: ".*" ended with [1-9]/)
  },
  10 * minutes,
)

/** What the signature of a program is of (RFC 2315, 9.3: the attributes as a set), and the signature itself. */
async function signatureOf(program: string): Promise<{ attributes: Buffer; signature: Buffer }> {
  await run(['sbattach', '--detach', path('detached'), program])
  const bytes = readFileSync(path('detached'))
  const rows = (await run(['openssl', 'asn1parse', '-inform', 'DER', '-in', path('detached')])).split('\n').flatMap((line) => {
    const [, start, header, length, kind = ''] = /^ *(\d+):d=5 +hl=(\d+) +l= *(\d+) \w+: +(.*)$/.exec(line) ?? []
    return start === undefined ? [] : [{ start: Number(start), header: Number(header), length: Number(length), kind }]
  })
  const row = (pattern: RegExp) => {
    const found = rows.findLast(({ kind }) => pattern.test(kind))
    if (!found) throw new Error('the signature has another structure')
    return bytes.subarray(found.start, found.start + found.header + found.length)
  }
  const attributes = Buffer.from(row(/^cont \[ 0 \]/))
  attributes[0] = 0x31
  const signature = row(/^OCTET STRING/)
  return { attributes, signature: signature.subarray(signature.length - 256) }
}
