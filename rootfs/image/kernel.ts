/** Debian's kernel, or the hardened one from its sources; the modules pruned and their dependencies worked out. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { moduleName } from '../../src/wire/modules-dep.ts'
import { cached, hashOf } from '../build/cache.ts'
import { task } from '../build/progress.ts'
import { run } from '../build/run.ts'
import { type Target, targets } from '../build/target.ts'
import { type TakenPackage, takePackage } from '../debian/archive.ts'
import { formatLock, type LockedPackage, parseLock } from '../debian/lock.ts'
import { type CompiledKernel, compiledKernel } from '../kernel/compile.ts'
import { takeSource } from '../kernel/configure.ts'
import type { KernelKind } from '../kernel/kind.ts'
import { dependsOf, KernelError, keptModules, pruned } from './modules.ts'

/** The package that depends on the current build of the kernel. */
const metaPackageOf = ({ arch }: Target) => `linux-image-${arch}`
const lockPathOf = ({ suffix }: Target) => join(import.meta.dir, `../image${suffix}.lock`)

/** The packages of the two boot loaders. */
const loaderPackages = { systemd: 'systemd-boot-efi', grub: 'grub-pc-bin' } as const

/** A kernel at hand. */
export interface Kernel {
  /** The release, as printed by `uname -r`. */
  release: string
  /** The bootable file. */
  image: string
  /** A folder with `<release>/kernel/…` and depmod's tables. */
  modules: string
  /** Paths of the modules below `<release>`, sorted. */
  paths: string[]
  /** Names of what is built in, with underscores. */
  builtin: ReadonlySet<string>
}

/** What an image is started with, from Debian's packages. */
export interface Starters {
  kernel: Kernel
  /** systemd's boot loader and its stub of a unified kernel image. */
  systemd: { loader: string; stub: string }
  /** Folder of GRUB's modules and first sectors; absent where no machine has a BIOS. */
  grub?: string | undefined
  packages: LockedPackage[]
}

/** How packages are taken. */
export interface TakeOptions {
  target?: Target
  kind?: KernelKind
  /** Use the current archive and rewrite image.lock. */
  relock?: boolean
  /** Take exactly what image.lock names, or nothing. */
  locked?: boolean
}

/** Takes one package, as the lock file has it. */
type Take = (name: string) => Promise<TakenPackage>

/** Takes kernel and boot loaders as `image.lock` has them, or as the archive offers them now. */
export async function takeStarters(options: TakeOptions = {}): Promise<Starters> {
  const { target = targets.amd64, kind = 'debian', relock = false, locked = false } = options
  const lockPath = lockPathOf(target)
  const lock = !relock && existsSync(lockPath) ? parseLock(readFileSync(lockPath, 'utf8')) : new Map<string, LockedPackage>()
  const shown = task('taking kernel and boot loaders')
  const at = (what: string) => shown.at(what)
  const taken: TakenPackage[] = []
  const take: Take = async (name) => {
    const one = await takePackage(name, lock.get(name), at, target)
    checkLocked(one, lock, { locked, lockPath })
    taken.push(one)
    return one
  }
  try {
    const boot = join((await take(loaderPackages.systemd)).folder, 'usr/lib/systemd/boot/efi')
    const systemd = { loader: join(boot, `systemd-boot${target.efi}.efi`), stub: join(boot, `linux${target.efi}.efi.stub`) }
    const grub = target.arch === 'amd64' ? join((await take(loaderPackages.grub)).folder, 'usr/lib/grub/i386-pc') : undefined
    const loaders = [...taken]
    const source = kind === 'hardened' ? await takeSource({ relock, locked }, at) : undefined
    const made = source ? await compiledKernel(source, at) : await takeDebianKernel(target, take)
    const kernel = await kernelOf(made, target, at)
    // The lock file names Debian's kernel also when the other one is built in.
    if (relock && source) await takeDebianKernel(target, take)
    if (relock || !existsSync(lockPath)) writeLock(lockPath, taken)
    shown.done(`${kernel.release}, ${kernel.paths.length} modules`)
    return { kernel, systemd, grub, packages: (source ? [...loaders, source] : taken).map(listed) }
  } catch (error) {
    shown.failed()
    throw error
  }
}

const listed = ({ name, version, sha256 }: LockedPackage): LockedPackage => ({ name, version, sha256 })

const writeLock = (path: string, packages: readonly LockedPackage[]) =>
  writeFileSync(
    path,
    formatLock(packages.map(listed)).replace(/^#.*/, '# Debian packages of kernel and boot loaders; written by `./mkimage.sh --lock`.'),
  )

/** Reports a package that is not the one of the lock file; throws KernelError when only that one is accepted. */
function checkLocked(
  { name, version, sha256 }: LockedPackage,
  lock: ReadonlyMap<string, LockedPackage>,
  { locked, lockPath }: { locked: boolean; lockPath: string },
): void {
  const before = lock.get(name)
  if (!lock.size || before?.sha256 === sha256) return
  const message = `Debian package ${name}: the archive has moved on${before ? ` from ${before.version}` : ''} to ${version}`
  if (locked)
    throw new KernelError(
      `${message}: only packages in rootfs/${basename(lockPath)} are accepted; --unlocked accepts the newer one, --lock rewrites the file`,
    )
  console.error(message)
}

/** The kernel that Debian offers for a processor, in its package. */
async function takeDebianKernel(target: Target, take: Take): Promise<CompiledKernel> {
  const metaPackage = metaPackageOf(target)
  const meta = await take(metaPackage)
  const named = meta.depends.find((each) => each.startsWith('linux-image-'))
  if (!named) throw new KernelError(`Debian package "${metaPackage}" depends on no kernel`)
  const { name, folder, sha256 } = await take(named)
  const release = name.slice('linux-image-'.length)
  return { release, image: join(folder, 'boot', `vmlinuz-${release}`), modules: join(folder, 'lib/modules', release), content: sha256 }
}

async function kernelOf(
  { release, image, modules: source, content }: CompiledKernel,
  { arch }: Target,
  at: (what: string) => void,
): Promise<Kernel> {
  for (const path of [image, source]) if (!existsSync(path)) throw new KernelError(`kernel ${release}: there is no "${path}"`)
  const builtin = new Set(readFileSync(join(source, 'modules.builtin'), 'utf8').split('\n').filter(Boolean).map(moduleName))
  const choice = hashOf(readFileSync(join(import.meta.dir, 'modules.ts')))
  const part = await cached('modules', { content, pruned, choice, form: 3 }, async (folder) => {
    at('pruning modules')
    const tree = join(folder, 'lib/modules', release) // where depmod looks
    const all = (readdirSync(source, { recursive: true }) as string[]).filter((path) => path.endsWith('.ko'))
    const needs = new Map(all.map((each) => [each, dependsOf(readFileSync(join(source, each)))]))
    for (const path of keptModules(needs, builtin, arch)) {
      mkdirSync(dirname(join(tree, path)), { recursive: true })
      cpSync(join(source, path), join(tree, path))
    }
    for (const path of ['modules.builtin', 'modules.builtin.modinfo', 'modules.order'])
      if (existsSync(join(source, path))) cpSync(join(source, path), join(tree, path))
    await run(['/usr/sbin/depmod', '-b', folder, release])
  })
  const modules = join(part.folder, 'lib/modules')
  const paths = (readdirSync(join(modules, release), { recursive: true }) as string[]).filter((each) => each.endsWith('.ko')).sort()
  return { release, image, modules, paths, builtin }
}
