/** `./mkimage.sh` as a whole, its products judged by the tools of others. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { prepareHost } from '../../rootfs/build/host.ts'
import { CommandError, run } from '../../rootfs/build/run.ts'
import { checkManifest, type ImageManifest } from '../../src/oci/image-manifest.ts'
import { packagesOf, parseVex } from '../../src/oci/openvex.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-image-'))
const made = join(folder, 'made')
const path = (name: string) => join(folder, name)
const product = (name: string) => join(made, name)
const release = path('release/usr/install/amd64')
const repository = join(import.meta.dir, '../..')
const minutes = 60_000
let manifest: ImageManifest

beforeAll(async () => {
  await prepareHost([
    { name: 'xorriso', why: 'judges CDs', shown: '/usr/bin/xorriso' },
    { name: 'squashfs-tools', why: 'judges root file systems', shown: '/usr/bin/unsquashfs' },
    { name: 'cryptsetup-bin', why: 'judges trees of hashes', shown: '/usr/sbin/veritysetup' },
    { name: 'sbsigntool', why: 'judges signatures of Secure Boot', shown: '/usr/bin/sbverify' },
    { name: 'openssl', why: 'makes keys and certificates', shown: '/usr/bin/openssl' },
    { name: 'binutils', why: 'judges programs of the firmware', shown: '/usr/bin/objdump' },
    { name: 'cpio', why: 'judges initramfs archives', shown: '/usr/bin/cpio' },
    { name: 'zstd', why: 'unpacks initramfs archives', shown: '/usr/bin/zstd' },
    { name: 'qemu-utils', why: 'judges disk images', shown: '/usr/bin/qemu-img' },
    { name: 'gdisk', why: 'judges partition tables', shown: '/usr/sbin/sgdisk' },
    { name: 'dosfstools', why: 'judges FAT file systems', shown: '/usr/sbin/fsck.vfat' },
    { name: 'grub-common', why: 'judges menus of GRUB', shown: '/usr/bin/grub-script-check' },
  ])
  const subject = ['-subj', '/CN=Ichor test', '-days', '3650', '-keyout', path('sb.key'), '-out', path('sb.crt')]
  await run(['openssl', 'req', '-new', '-x509', '-newkey', 'rsa:2048', '-nodes', '-sha256', ...subject])
  await run(['openssl', 'genpkey', '-algorithm', 'ed25519', '-out', path('key.pem')])
  mkdirSync(path('firmware/vendor'), { recursive: true })
  writeFileSync(path('firmware/vendor/nic.bin'), 'firmware of an interface')
  writeFileSync(path('config.yaml'), 'apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: embedded\n')
  await run([
    join(repository, 'mkimage.sh'),
    ...['--fast', '--output', made, '--key', path('key.pem'), '--secure-boot-key', path('sb.key'), '--secure-boot-cert', path('sb.crt')],
    ...['--embed-config', path('config.yaml'), '--firmware', path('firmware'), '--extra-kernel-arg', 'vendor.option=7'],
    ...['--extra-kernel-arg', '-consoleblank', '--platform', 'nocloud'],
  ])
  mkdirSync(path('release'))
  const layers = (await run(['tar', 'tvf', product('ichor-installer-amd64.tar')]))
    .split('\n')
    .filter((line) => line.includes('blobs/sha256/'))
  const biggest = layers
    .map((line) => line.split(/\s+/))
    .sort((a, b) => Number(b[2]) - Number(a[2]))[0]!
    .at(-1)!
  await run(['tar', 'xf', product('ichor-installer-amd64.tar'), '-C', folder, biggest])
  await run(['tar', 'xf', path(biggest), '-C', path('release')])
}, 60 * minutes)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the release is signed with the key that was given, and every file matches its manifest', async () => {
  const pem = await run(['openssl', 'pkey', '-in', path('key.pem'), '-pubout', '-outform', 'DER', '-out', path('key.der')])
  expect(pem).toBe('')
  const key = readFileSync(path('key.der')).subarray(-32).toString('base64')
  const text = readFileSync(join(release, 'manifest'))
  manifest = checkManifest(text, readFileSync(join(release, 'manifest.sig'), 'utf8'), key)
  for (const { name, size, sha256 } of manifest.files) {
    const bytes = readFileSync(join(release, name))
    expect(bytes).toHaveLength(size)
    expect(new Bun.CryptoHasher('sha256').update(bytes).digest('hex')).toBe(sha256)
  }
  expect(readFileSync(product('ichor-amd64.manifest'))).toEqual(text)
  writeFileSync(path('signature'), Buffer.from(readFileSync(product('ichor-SHA256SUMS.sig'), 'utf8'), 'base64'))
  const signed = ['-rawin', '-in', product('ichor-SHA256SUMS'), '-sigfile', path('signature')]
  await run(['openssl', 'pkeyutl', '-verify', '-inkey', path('key.pem'), ...signed])
  await run(['sha256sum', '--check', '--strict', '--quiet', 'ichor-SHA256SUMS'], { cwd: made })
})

test('veritysetup finds the tree over the root right, and a changed byte wrong', async () => {
  const [rootHash, salt, dataBlocks] = await rootLine()
  expect(rootHash).toBe(manifest.rootHash)
  const root = join(release, 'root.sqsh')
  const verify = (file: string) =>
    run([
      ...['/usr/sbin/veritysetup', 'verify', '--no-superblock', '--hash=sha256', '--data-block-size=4096', '--hash-block-size=4096'],
      ...[`--data-blocks=${dataBlocks}`, `--hash-offset=${Number(dataBlocks) * 4096}`, `--salt=${salt}`, file, file, rootHash!],
    ])
  await verify(root)
  const changed = readFileSync(root)
  changed[12_345_678]! ^= 1
  writeFileSync(path('changed.sqsh'), changed)
  await expect(verify(path('changed.sqsh'))).rejects.toThrow(CommandError)
  rmSync(path('changed.sqsh'))
})

async function rootLine(): Promise<string[]> {
  mkdirSync(path('initramfs'), { recursive: true })
  await unpackInitramfs(join(release, 'initramfs.xz'), path('initramfs'))
  return readFileSync(path('initramfs/ichor/root'), 'utf8').trim().split(' ')
}

/** As the kernel does: a compressed archive, then plain ones behind it. */
async function unpackInitramfs(file: string, into: string): Promise<void> {
  const bytes = readFileSync(file)
  const plain = bytes.lastIndexOf('0707010000000100', bytes.length)
  expect(plain).toBeGreaterThan(0)
  writeFileSync(path('bulk.zst'), bytes.subarray(0, plain))
  writeFileSync(path('own.cpio'), bytes.subarray(plain))
  await run(['sh', '-c', `zstd -dqc ${path('bulk.zst')} > ${path('bulk.cpio')} || test -s ${path('bulk.cpio')}`])
  for (const name of ['bulk.cpio', 'own.cpio']) await run(['sh', '-c', `cd ${into} && cpio -idmu --quiet < ${path(name)}`])
}

test('the initramfs holds stage 0, the modules on its list, and the key', async () => {
  const key = readFileSync(path('key.der')).subarray(-32).toString('base64')
  expect(readFileSync(path('initramfs/ichor/key.pub'), 'utf8')).toBe(`${key}\n`)
  const stage0 = readFileSync(path('initramfs/init'))
  expect(stage0.toString('latin1', 1, 4)).toBe('ELF')
  expect(stage0.length).toBeLessThan(16_384)
  const lines = readFileSync(path('initramfs/modules/list'), 'utf8').trim().split('\n')
  for (const line of lines) expect(readFileSync(path(`initramfs/modules/${line.split(' ')[0]}`)).length).toBeGreaterThan(1000)
  for (const name of ['nvme', 'ahci', 'megaraid_sas', 'virtio_blk', 'hv_storvsc', 'vmw_pvscsi', 'usb-storage', 'sr_mod'])
    expect(lines.some((line) => line.startsWith(`${name}.ko `))).toBe(true)
})

test('unsquashfs reads the root: modules, firmware, the configuration, and what is loaded before the lock', async () => {
  const root = join(release, 'root.sqsh')
  const cat = (file: string) => run(['unsquashfs', '-cat', root, file])
  expect(await cat('usr/lib/firmware/vendor/nic.bin')).toBe('firmware of an interface')
  expect(await cat('usr/local/etc/talos/config.yaml')).toContain('hostname: embedded')
  expect(await cat('usr/share/ichor/hot-plug-modules')).toContain('usb_storage\n')
  const listed = await run(['unsquashfs', '-ll', root, `usr/lib/modules/${manifest.kernel}`])
  expect(listed).toContain('modules.dep.bin')
  expect(listed).toMatch(/-rw-r--r-- .*kernel\/drivers\/net\/wireguard\/wireguard\.ko/)
  expect(await run(['unsquashfs', '-ll', root, 'usr/local/etc/talos'])).toMatch(/-rw------- .*config\.yaml/)
})

test('the kernel image is signed for Secure Boot and holds kernel, initramfs and command line', async () => {
  for (const name of ['vmlinuz.efi', 'systemd-boot.efi'])
    expect(await run(['sbverify', '--cert', path('sb.crt'), join(release, name)])).toContain('Signature verification OK')
  const section = async (name: string) => {
    await run(['objcopy', '-O', 'binary', `--only-section=${name}`, join(release, 'vmlinuz.efi'), path('section')])
    return readFileSync(path('section'))
  }
  const line = (await section('.cmdline')).toString()
  expect(`${line}\n`).toBe(readFileSync(join(release, 'cmdline'), 'utf8'))
  expect(line.split(' ')).toContain('vendor.option=7')
  expect(line).toContain('talos.platform=nocloud')
  expect(line).not.toContain('consoleblank')
  for (const required of ['slab_nomerge=', 'pti=on', 'init_on_alloc=1', 'lockdown=confidentiality'])
    expect(line.split(' ')).toContain(required)
  expect((await section('.osrel')).toString()).toContain(`VERSION_ID="${manifest.version}"`)
})

test('xorriso reads the CD, GRUB its menu, and the files on it are those of the release', async () => {
  const iso = product('ichor-amd64.iso')
  const report = await run(['sh', '-c', `xorriso -indev ${iso} -report_el_torito plain -report_system_area plain 2>&1`])
  expect(report).toMatch(/El Torito boot img : +1 +BIOS +y +none/)
  expect(report).toMatch(/El Torito boot img : +2 +UEFI +y +none/)
  expect(report).toMatch(/MBR grub2-mbr/)
  expect(report).toMatch(/MBR partition +: +2 +0x00 +0xef/)
  await run(['sh', '-c', `xorriso -osirrox on -indev ${iso} -extract / ${path('cd')} 2>&1`])
  for (const { name } of manifest.files)
    expect(readFileSync(path(`cd/USR/INSTALL/AMD64/${name.toUpperCase()}`)).equals(readFileSync(join(release, name)))).toBe(true)
  const hash16 = manifest.rootHash.slice(0, 16)
  expect(readFileSync(path(`cd/ICHOR/${hash16.toUpperCase()}.SQSH`)).equals(readFileSync(join(release, 'root.sqsh')))).toBe(true)
  await run(['grub-script-check', path('cd/BOOT/GRUB/GRUB.CFG')])
  const seen = await run(['grub-fstest', iso, 'cat', '(loop0)/boot/grub/grub.cfg'])
  expect(seen).toContain('linux /usr/install/amd64/vmlinuz ')
})

test('fsck.vfat finds the system partition of the CD clean', async () => {
  const iso = product('ichor-amd64.iso')
  const bytes = readFileSync(iso)
  const start = bytes.readUInt32LE(0x1ce + 8) * 512
  writeFileSync(path('efi.img'), bytes.subarray(start))
  expect(await run(['/usr/sbin/fsck.vfat', '-n', '-v', path('efi.img')])).not.toMatch(/differ|dirty|error|bad|truncat/i)
})

test('sgdisk, fsck.vfat and qemu-img find the disks right', async () => {
  expect(await run(['/usr/sbin/sgdisk', '-v', product('ichor-amd64.raw')])).toContain('No problems found')
  const table = await run(['/usr/sbin/sgdisk', '-p', product('ichor-amd64.raw')])
  expect(table).toMatch(/ 1 .* EF00 +EFI/)
  expect(table).toMatch(/ 2 .* META/)
  await run([
    'dd',
    `if=${product('ichor-amd64.raw')}`,
    `of=${path('efi.img')}`,
    'bs=1M',
    'skip=1',
    'count=2101',
    'conv=sparse',
    'status=none',
  ])
  expect(await run(['/usr/sbin/fsck.vfat', '-n', path('efi.img')])).not.toMatch(/differ|dirty|error|bad|truncat/i)
  expect(await run(['qemu-img', 'check', product('ichor-amd64.qcow2')])).toContain('No errors were found')
  expect(await run(['qemu-img', 'compare', '-f', 'raw', '-F', 'qcow2', product('ichor-amd64.raw'), product('ichor-amd64.qcow2')])).toMatch(
    /identical/,
  )
})

test('what is stated on flaws is about packages of the SBOM', () => {
  const { statements } = parseVex(readFileSync(product('ichor-amd64.vex.json'), 'utf8'))
  const sbom = readFileSync(product('ichor-amd64.spdx.json'), 'utf8')
  expect(statements.length).toBeGreaterThan(0)
  for (const name of statements.flatMap(({ products }) => products.flatMap(packagesOf))) expect(sbom).toContain(`"${name}"`)
})

test('the SBOM names kernel, boot loaders and the binary', () => {
  const { packages } = JSON.parse(readFileSync(product('ichor-amd64.spdx.json'), 'utf8')) as { packages: { name: string }[] }
  const names = packages.map(({ name }) => name)
  for (const name of ['ichor', 'kube', `linux-image-${manifest.kernel}`, 'systemd-boot-efi', 'grub-pc-bin']) expect(names).toContain(name)
})
