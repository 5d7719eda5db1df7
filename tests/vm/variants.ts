/**
 * Releases that go wrong in one way each, made from a good one without building it again: another first process, other kernel
 * parameters, another signature. They are signed like the good one unless stated otherwise.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { run } from '../../rootfs/build/run.ts'
import { type Arch, targets } from '../../rootfs/build/target.ts'
import { imageKey } from '../../rootfs/image/key.ts'
import { writeInstaller } from '../../rootfs/image/products.ts'
import type { Release } from '../../rootfs/image/release.ts'
import * as files from '../../src/linux/fs/files.ts'
import { formatManifest, parseManifest } from '../../src/oci/image-manifest.ts'
import { archiveFiles } from '../../src/os/lifecycle/release/installer-image.ts'
import { signatureLine } from '../../src/programs/factory/image-key.ts'
import { makeUki } from '../../src/programs/factory/release/uki.ts'
import { appendVerity, type Verity, verityLine } from '../../src/programs/factory/root/verity.ts'
import { cpioHeader, cpioPadding, cpioTrailer, cpioTypes } from '../../src/wire/cpio.ts'
import { forgetState, stateFolder } from './machine.ts'

/** The ways. */
export type Variant = 'good' | 'unlocked' | 'hangs' | 'panics' | 'dies' | 'mute' | 'unsigned' | 'truncated' | 'large'

/** Minutes that a release which never answers has to prove itself. */
const trialMinutes = 4

/** Releases with a root file system and a boot loader of their own, by what is behind the first one's; the others share them. */
const ownRoots: Readonly<Partial<Record<Variant, number>>> = { good: 1, unlocked: 2 }
/** Of SquashFS as its hash tree sees it. */
const rootBlock = 4096

/** First processes: one that never does anything, one that ends. The kernel calls them, so they have no C library. */
const firstProcesses = { hangs: 'for (;;) call(PPOLL, 0, 0, 0);', dies: 'call(EXIT, 1, 0, 0);' } as const

/** How a processor calls the kernel (syscall(2)), and the numbers of the calls. */
const systemCalls: Readonly<Record<Arch, string>> = {
  amd64: `
enum { WRITE = 1, EXIT = 60, PPOLL = 271 };
static long call(long number, long a, long b, long c)
{
	long result;
	register long d __asm__("r10") = 0;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d) : "rcx", "r11", "memory");
	return result;
}
__asm__(".globl _start\\n_start:\\n\\tcall start\\n");
`,
  arm64: `
enum { WRITE = 64, EXIT = 93, PPOLL = 73 };
static long call(long number, long a, long b, long c)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = 0;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}
__asm__(".globl _start\\n_start:\\n\\tbl start\\n");
`,
}

const source = (name: string, body: string, arch: Arch) => `${systemCalls[arch]}
__attribute__((noreturn, used)) static void start(void)
{
	static const char text[] = "[test] this release ${name}\\n";
	/* The kernel gives the first process its console as 0, 1 and 2 when there is one. */
	call(WRITE, 1, (long)text, sizeof text - 1);
	for (;;) { ${body} }
}
`

/** Where they are kept; stories share them. */
let folder: string | undefined

/** Removes the archives unless ICHOR_VM_STATE keeps them. */
export function forgetVariants(): void {
  if (folder) forgetState(folder)
  folder = undefined
}

/** Makes the archive of a variant of an installer image, or takes the one that is there; gives its path. */
export async function makeVariant(installer: string, variant: Variant, arch: Arch = 'amd64'): Promise<string> {
  folder ??= stateFolder('variants')
  // Of another build the variants are others.
  const archive = join(folder, `${variant}-${arch}-${Math.round(statSync(installer).mtimeMs).toString(36)}.tar`)
  if (existsSync(archive)) return archive
  const work = join(folder, `${variant}-${arch}.work`)
  mkdirSync(work, { recursive: true })
  try {
    const names = await unpack(installer, work, arch)
    const read = (name: string) => readFileSync(join(work, name))
    const write = (name: string, content: Uint8Array | string) => writeFileSync(join(work, name), content)
    let initramfs = read('initramfs.xz')
    let commandLine = read('cmdline').toString().trim()
    const replacing = (name: string, mode: number, content: Buffer) => {
      initramfs = Buffer.concat([initramfs, Buffer.alloc((4 - (initramfs.length % 4)) % 4), replacement(name, mode, content)])
    }
    if (variant === 'hangs' || variant === 'dies') replacing('init', 0o755, await firstProcess(work, variant, arch))
    let { rootHash } = parseManifest(read('manifest').toString())
    // What is refused at its beginning needs no end.
    if (variant === 'unsigned' || variant === 'truncated') truncateSync(join(work, 'root.sqsh'), 1 << 20)
    const blocks = ownRoots[variant]
    if (blocks) {
      const verity = await anotherRoot(join(work, 'root.sqsh'), blocks)
      rootHash = verity.rootHash
      replacing('ichor/root', 0o644, Buffer.from(verityLine(verity)))
      // Firmware ignores what is behind the sections of a program.
      write('systemd-boot.efi', Buffer.concat([read('systemd-boot.efi'), Buffer.alloc(blocks * 512)]))
      // GRUB unpacks as many bytes of its core as the core states.
      if (names.includes('grub/core.img')) write('grub/core.img', Buffer.concat([read('grub/core.img'), Buffer.alloc(blocks * 512)]))
    }
    // Without anything to start from the kernel gives up.
    if (variant === 'panics') initramfs = Buffer.from(cpioTrailer())
    // A kernel that is locked down takes no other one in its place that is not signed for it.
    if (variant === 'unlocked') commandLine = commandLine.replace(/ ?\blockdown=\S+/, '')
    if (variant === 'large') initramfs = Buffer.concat([initramfs, Buffer.alloc(32 << 20)])
    // Without its network interface a machine has no address, and its API nothing to listen on.
    if (variant === 'mute') commandLine += ` module_blacklist=virtio_net ichor.trial-minutes=${trialMinutes}`
    write('initramfs.xz', initramfs)
    write('cmdline', `${commandLine}\n`)
    const uki = makeUki({
      stub: read('systemd-stub.efi'),
      osRelease: 'ID=ichor\nVERSION_ID=test\n',
      commandLine,
      initramfs,
      kernel: read('vmlinuz'),
    })
    write('vmlinuz.efi', uki)
    const before = parseManifest(read('manifest').toString())
    const manifest = formatManifest({
      ...before,
      rootHash,
      version: `${before.version}-${variant}`,
      files: before.files.map(({ name }) => described(work, name)),
    })
    write('manifest', manifest)
    write('manifest.sig', variant === 'unsigned' ? read('manifest.sig') : signatureLine(Buffer.from(manifest), imageKey().key))
    await writeInstaller(`${archive}.part`, { folder: work, names, target: targets[arch] } as Release)
    if (variant === 'truncated') truncateSync(`${archive}.part`, Math.floor(statSync(`${archive}.part`).size * 0.6))
    copyFileSync(`${archive}.part`, archive)
    rmSync(`${archive}.part`)
    return archive
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

async function unpack(installer: string, folder: string, arch: Arch): Promise<string[]> {
  const release = await archiveFiles({ files }, installer, statSync(installer).size, installer, arch)
  const copy = async (name: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), Buffer.concat(await Array.fromAsync(release.open(name))))
  }
  await copy('manifest')
  await copy('manifest.sig')
  const names = parseManifest(readFileSync(join(folder, 'manifest'), 'utf8')).files.map(({ name }) => name)
  for (const name of names) await copy(name)
  return ['manifest', 'manifest.sig', ...names]
}

function described(folder: string, name: string) {
  const content = readFileSync(join(folder, name))
  return { name, size: content.length, sha256: new Bun.CryptoHasher('sha256').update(content).digest('hex') }
}

/** The same root file system with blocks behind it that nothing reads, under hashes of its own: what a release brings is written. */
async function anotherRoot(path: string, more: number): Promise<Verity> {
  const file = await open(path, 'r+')
  try {
    const superblock = Buffer.alloc(48)
    await file.read(superblock, 0, superblock.length, 0)
    const used = Number(superblock.readBigUInt64LE(40))
    const end = Math.ceil(used / rootBlock) * rootBlock
    await file.truncate(end)
    await file.truncate(end + more * rootBlock)
  } finally {
    await file.close()
  }
  return appendVerity(path)
}

/** A second archive: what it holds replaces what the first one holds. */
function replacement(name: string, mode: number, content: Buffer): Buffer {
  const header = cpioHeader({ name, mode: cpioTypes.file | mode, size: content.length }, 1)
  return Buffer.concat([header, content, cpioPadding(content.length), cpioTrailer()])
}

async function firstProcess(folder: string, variant: keyof typeof firstProcesses, arch: Arch): Promise<Buffer> {
  const code = join(folder, 'init.c')
  const program = join(folder, 'init')
  writeFileSync(code, source(variant, firstProcesses[variant], arch))
  await run([
    targets[arch].gcc,
    '-Os',
    '-static',
    '-nostdlib',
    '-ffreestanding',
    '-fno-stack-protector',
    '-Wl,--build-id=none',
    '-o',
    program,
    code,
  ])
  const content = readFileSync(program)
  rmSync(code)
  rmSync(program)
  return content
}
