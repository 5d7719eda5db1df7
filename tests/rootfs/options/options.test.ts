import { afterAll, expect, test } from 'bun:test'
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '../../../rootfs/build/failure.ts'
import { checkGiven } from '../../../rootfs/image/given.ts'
import { imageKey, ownKeyPath } from '../../../rootfs/image/key.ts'
import { imageOptions } from '../../../rootfs/image/options.ts'
import { checkKeys } from '../../../rootfs/image/secure-boot.ts'
import { checkManifest, formatManifest } from '../../../src/oci/image-manifest.ts'
import { platforms } from '../../../src/os/network/platform/platforms.ts'
import { KeyError, publicLine, signatureLine } from '../../../src/programs/factory/image-key.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-options-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('without flags everything is made, for metal, as small as it gets', () => {
  const options = imageOptions([])!
  expect([...options.only]).toEqual(['iso', 'disk', 'pxe', 'installer', 'uki', 'oci'])
  expect(options.locked).toBe(true)
  expect(options).toMatchObject({ kernel: 'debian', platform: 'metal', fast: false, enroll: 'if-safe', extraKernelArgs: [] })
  expect(imageOptions(['--help'])).toBeUndefined()
})

test('a kernel parameter that is to go begins with a dash', () => {
  const { extraKernelArgs } = imageOptions(['--extra-kernel-arg', '-panic', '--fast', '--extra-kernel-arg=a=b', '--extra-kernel-arg', 'c'])!
  expect(extraKernelArgs).toEqual(['-panic', 'a=b', 'c'])
})

test.each([
  [['--arch', 'arm64', '--disk-firmware', 'bios'], '--disk-firmware bios: no arm64 machine has a BIOS'],
  [['--arch', 'arm64', '--disk-formats', 'raw,ova'], '--disk-formats ova: the OVA is described for amd64 only'],
  [['--overlay-name', 'rock64', '--overlay-image', 'a/b'], '--overlay-name "rock64": must be rpi_generic'],
  [['--overlay-name', 'rpi_generic'], '--overlay-name needs --overlay-image'],
  [['--overlay-name', 'rpi_generic', '--overlay-image', 'a/b'], 'its boards have arm64: add --arch arm64'],
  [['--overlay-option', 'configTxt=a'], '--overlay-image and --overlay-option need --overlay-name'],
  [['--arch', 'arm64', '--overlay-name', 'rpi_generic', '--overlay-image', 'a/b'], 'boards start from disks: add --only disk'],
  [
    ['--arch', 'arm64', '--only', 'disk', '--overlay-name', 'rpi_generic', '--overlay-image', 'a/b', '--overlay-option', 'spi_boot=1'],
    '--overlay-option "spi_boot=1": must be configTxt=TEXT or configTxt=@FILE, configTxtAppend=TEXT or configTxtAppend=@FILE',
  ],
  [['--kernel', 'mine'], '--kernel "mine": must be some of debian, hardened'],
  [['--kernel', 'hardened', '--arch', 'arm64'], '--kernel hardened: its options are for amd64, not for arm64'],
  [
    ['--kernel', 'hardened', '--check-reproducible'],
    '--check-reproducible: each build of the hardened kernel signs its modules with a key of its own',
  ],
  [['--arch', 'mips'], '--arch "mips": must be amd64 or arm64'],
  [['--platform', 'Metal!'], '--platform "Metal!": must be a name like "metal"'],
  [['--sd-boot-enroll-keys', 'maybe'], '--sd-boot-enroll-keys "maybe": must be if-safe, force or off'],
  [['--only', 'iso,floppy'], '--only "floppy": must be some of iso, disk, pxe, installer, uki, oci'],
  [['--embed-config', '/nowhere'], '--embed-config "/nowhere": there is no such file'],
  [['--embed-config', import.meta.dir], 'must be a file'],
  [['--firmware', import.meta.path], 'must be a folder'],
  [['--secure-boot-key', import.meta.path], '--secure-boot-key and --secure-boot-cert go together'],
  [['--locked', '--lock'], '--locked and --lock exclude each other'],
  [['--unlocked', '--lock'], '--unlocked and --lock exclude each other'],
  [['--fats'], './mkimage.sh --help lists the flags'],
])('%p is refused', (args, message) => {
  expect(() => imageOptions(args)).toThrow(message)
  expect(() => imageOptions(args)).toThrow(UsageError)
})

test('a platform that no machine knows is refused, and every one that it knows is taken', async () => {
  const given = (platform: string) => checkGiven(imageOptions(['--output', folder, '--platform', platform])!)
  await expect(given('moon')).rejects.toThrow('--platform "moon": must be one of metal, akamai, aws')
  for (const platform of ['metal', ...Object.keys(platforms)]) await given(platform)
})

test.each([
  ['nothing', '', 'the configuration is empty'],
  ['no YAML', '{', 'line 1, column 2: something that was opened is not closed'],
  ['half a configuration', 'machine:\n  type: worker\n', 'cluster: the section is required'],
  ['what a machine would refuse', 'machine:\n  type: nonsense\ncluster: {}\n', '"nonsense" is not one of controlplane, worker'],
])('%s is not put into an image as its configuration', async (_, text, message) => {
  const path = join(folder, 'config.yaml')
  writeFileSync(path, text)
  const given = checkGiven(imageOptions(['--output', folder, '--embed-config', path])!)
  await expect(given).rejects.toThrow(`--embed-config "${path}": `)
  await expect(given).rejects.toThrow(message)
  await expect(given).rejects.toBeInstanceOf(UsageError)
})

test('documents that another configuration completes may be put into an image', async () => {
  const path = join(folder, 'part.yaml')
  writeFileSync(path, 'apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: embedded\n')
  await checkGiven(imageOptions(['--output', folder, '--embed-config', path])!)
})

test('a key is made on first use, only its owner reads it, and what it signs is taken', () => {
  const before = process.env.XDG_CONFIG_HOME
  process.env.XDG_CONFIG_HOME = folder
  try {
    const first = imageKey()
    expect(first).toMatchObject({ path: ownKeyPath(), made: true })
    expect(statSync(first.path).mode & 0o777).toBe(0o600)
    const again = imageKey()
    expect(again.made).toBe(false)
    expect(publicLine(again.key)).toBe(publicLine(first.key))
    const rootHash = 'ab'.repeat(32)
    const text = formatManifest({ version: 'v1', arch: 'amd64', kubernetes: 'v1', kernel: '6', rootHash, files: [] })
    expect(checkManifest(Buffer.from(text), signatureLine(Buffer.from(text), again.key), publicLine(again.key)).rootHash).toBe(rootHash)
  } finally {
    if (before === undefined) delete process.env.XDG_CONFIG_HOME
    else process.env.XDG_CONFIG_HOME = before
  }
})

test('keys of Secure Boot are looked at first: RSA, and the certificate is that of the key', async () => {
  const make = (name: string, kind: string) => {
    const at = { key: join(folder, `${name}.key`), certificate: join(folder, `${name}.crt`) }
    const { exitCode } = Bun.spawnSync([
      ...['openssl', 'req', '-new', '-x509', '-newkey', kind, '-nodes', '-subj', '/CN=test', '-keyout', at.key, '-out', at.certificate],
      ...(kind === 'ec' ? ['-pkeyopt', 'ec_paramgen_curve:P-256'] : []),
    ])
    expect(exitCode).toBe(0)
    return at
  }
  const [one, other, curve] = [make('one', 'rsa:1024'), make('other', 'rsa:1024'), make('curve', 'ec')]
  checkKeys(one)
  expect(() => checkKeys({ key: one.key, certificate: other.certificate })).toThrow('is not that of key')
  expect(() => checkKeys(curve)).toThrow('firmwares take RSA keys only')
  expect(() => checkKeys({ key: import.meta.path, certificate: one.certificate })).toThrow('no private key without a passphrase in PEM')
  expect(() => checkKeys({ key: one.key, certificate: one.key })).toThrow('no certificate in PEM')
})

test('what is no Ed25519 key is refused', () => {
  const path = join(folder, 'rsa.pem')
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  expect(createPublicKey(createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' }))).asymmetricKeyType).toBe('rsa')
  expect(() => imageKey(path)).toThrow('no private Ed25519 key in PEM')
  writeFileSync(path, 'nothing')
  expect(() => imageKey(path)).toThrow(KeyError)
  expect(() => imageKey(join(folder, 'absent'))).toThrow('ENOENT')
})
