/** Debian's kernel and its modules, taken apart, the modules pruned and their dependencies worked out. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { moduleName } from '../../src/wire/modules-dep.ts'
import { cached, hashOf } from '../build/cache.ts'
import { task } from '../build/progress.ts'
import { run } from '../build/run.ts'
import { type Target, targets } from '../build/target.ts'
import { type TakenPackage, takePackage } from '../debian/archive.ts'
import { formatLock, type LockedPackage, parseLock } from '../debian/lock.ts'
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
  /** Use the current archive and rewrite image.lock. */
  relock?: boolean
  /** Take exactly what image.lock names, or nothing. */
  locked?: boolean
}

/** Takes kernel and boot loaders as `image.lock` has them, or as the archive offers them now. */
export async function takeStarters({ target = targets.amd64, relock = false, locked = false }: TakeOptions = {}): Promise<Starters> {
  const lockPath = lockPathOf(target)
  const metaPackage = metaPackageOf(target)
  const lock = !relock && existsSync(lockPath) ? parseLock(readFileSync(lockPath, 'utf8')) : new Map<string, LockedPackage>()
  const shown = task('taking kernel and boot loaders')
  const taken: TakenPackage[] = []
  const take = async (name: string) => {
    const one = await takePackage(name, lock.get(name), (what) => shown.at(what), target)
    const before = lock.get(name)
    if (lock.size && before?.sha256 !== one.sha256) {
      const message = `Debian package ${name}: the archive has moved on${before ? ` from ${before.version}` : ''} to ${one.version}`
      if (locked)
        throw new KernelError(
          `${message}: only packages in rootfs/${basename(lockPath)} are accepted; --unlocked accepts the newer one, --lock rewrites the file`,
        )
      console.error(message)
    }
    taken.push(one)
    return one
  }
  try {
    const meta = await take(metaPackage)
    const name = meta.depends.find((each) => each.startsWith('linux-image-'))
    if (!name) throw new KernelError(`Debian package "${metaPackage}" depends on no kernel`)
    const kernel = await kernelOf(await take(name), target, (what) => shown.at(what))
    const boot = join((await take(loaderPackages.systemd)).folder, 'usr/lib/systemd/boot/efi')
    const systemd = { loader: join(boot, `systemd-boot${target.efi}.efi`), stub: join(boot, `linux${target.efi}.efi.stub`) }
    const grub = target.arch === 'amd64' ? join((await take(loaderPackages.grub)).folder, 'usr/lib/grub/i386-pc') : undefined
    const packages = taken.map(({ name, version, sha256 }) => ({ name, version, sha256 }))
    if (relock || !existsSync(lockPath))
      writeFileSync(
        lockPath,
        formatLock(packages).replace(/^#.*/, '# Debian packages of kernel and boot loaders; written by `./mkimage.sh --lock`.'),
      )
    shown.done(`${kernel.release}, ${kernel.paths.length} modules`)
    return { kernel, systemd, grub, packages }
  } catch (error) {
    shown.failed()
    throw error
  }
}

async function kernelOf(taken: TakenPackage, { arch }: Target, at: (what: string) => void): Promise<Kernel> {
  const release = taken.name.slice('linux-image-'.length)
  const image = join(taken.folder, 'boot', `vmlinuz-${release}`)
  const source = join(taken.folder, 'lib/modules', release)
  for (const path of [image, source])
    if (!existsSync(path)) throw new KernelError(`Debian package "${taken.name}" has no "${path.slice(taken.folder.length)}"`)
  const choice = hashOf(readFileSync(join(import.meta.dir, 'modules.ts')))
  const part = await cached('modules', { sha256: taken.sha256, pruned, choice, form: 2 }, async (folder) => {
    at('pruning modules')
    const tree = join(folder, 'lib/modules', release) // where depmod looks
    const all = (readdirSync(source, { recursive: true }) as string[]).filter((path) => path.endsWith('.ko'))
    const needs = new Map(all.map((each) => [each, dependsOf(readFileSync(join(source, each)))]))
    const builtin = readFileSync(join(source, 'modules.builtin'), 'utf8').split('\n').filter(Boolean).map(moduleName)
    for (const path of keptModules(needs, new Set(builtin), arch)) {
      mkdirSync(dirname(join(tree, path)), { recursive: true })
      cpSync(join(source, path), join(tree, path))
    }
    for (const path of ['modules.builtin', 'modules.builtin.modinfo', 'modules.order'])
      if (existsSync(join(source, path))) cpSync(join(source, path), join(tree, path))
    await run(['/usr/sbin/depmod', '-b', folder, release])
  })
  const modules = join(part.folder, 'lib/modules')
  const paths = (readdirSync(join(modules, release), { recursive: true }) as string[]).filter((each) => each.endsWith('.ko')).sort()
  return { release, image, modules, paths }
}
