/** Debian's kernel and its modules, taken apart, the modules pruned and their dependencies worked out. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cached, hashOf } from '../build/cache.ts'
import { task } from '../build/progress.ts'
import { run } from '../build/run.ts'
import { takePackage } from '../debian/archive.ts'
import { formatLock, type LockedPackage, parseLock } from '../debian/lock.ts'

/** The package that depends on the current build of the kernel. */
const metaPackage = 'linux-image-cloud-amd64'
const lockPath = join(import.meta.dir, '../image.lock')

/** Modules no machine of ours uses: sound, pictures, toys, and what only other architectures' firmware needs. */
const pruned: readonly string[] = [
  'kernel/sound',
  'kernel/drivers/gpu',
  'kernel/drivers/media',
  'kernel/drivers/video',
  'kernel/drivers/staging',
  'kernel/drivers/isdn',
  'kernel/drivers/comedi',
  'kernel/drivers/iio',
  'kernel/drivers/bluetooth',
  'kernel/drivers/input/joystick',
  'kernel/drivers/net/wireless',
  'kernel/net/bluetooth',
  'kernel/net/wireless',
  'kernel/net/mac80211',
  'kernel/fs/reiserfs',
  'kernel/fs/jfs',
  'kernel/fs/ocfs2',
  'kernel/fs/gfs2',
  'kernel/fs/minix',
  'kernel/fs/ufs',
  'kernel/fs/hfs',
  'kernel/fs/hfsplus',
  'kernel/fs/ntfs',
  'kernel/fs/affs',
  'kernel/fs/coda',
]

/** The kernel package lacks something an image needs. */
export class KernelError extends Error {
  override name = 'KernelError'
}

/** A kernel at hand. */
export interface Kernel {
  /** As `uname -r` says. */
  release: string
  /** The bootable file. */
  image: string
  /** A folder with `<release>/kernel/…` and depmod's tables. */
  modules: string
  packages: LockedPackage[]
}

/** Takes the kernel as `image.lock` has it, or as the archive offers it now. */
export async function takeKernel(relock: boolean): Promise<Kernel> {
  const lock = !relock && existsSync(lockPath) ? parseLock(readFileSync(lockPath, 'utf8')) : new Map<string, LockedPackage>()
  const shown = task('taking the kernel')
  const meta = await takePackage(metaPackage, lock.get(metaPackage), (name) => shown.at(name))
  const name = meta.depends.find((each) => each.startsWith('linux-image-'))
  if (!name) throw new KernelError(`Debian package "${metaPackage}" depends on no kernel`)
  const taken = await takePackage(name, lock.get(name), (each) => shown.at(each))
  const packages = [meta, taken].map(({ name, version, sha256 }) => ({ name, version, sha256 }))
  for (const each of packages) {
    const before = lock.get(each.name)
    if (lock.size && before?.sha256 !== each.sha256)
      console.error(`Debian package ${each.name}: the archive has moved on${before ? ` from ${before.version}` : ''} to ${each.version}`)
  }
  if (relock || !existsSync(lockPath))
    writeFileSync(lockPath, formatLock(packages).replace(/^#.*/, '# Debian packages of the kernel; written by `./mkimage.sh --lock`.'))
  const release = name.slice('linux-image-'.length)
  const image = join(taken.folder, 'boot', `vmlinuz-${release}`)
  const source = join(taken.folder, 'lib/modules', release)
  const symbols = join(taken.folder, 'boot', `System.map-${release}`)
  for (const path of [image, source, symbols])
    if (!existsSync(path)) throw new KernelError(`Debian package "${name}" has no "${path.slice(taken.folder.length)}"`)
  const part = await cached('modules', { sha256: taken.sha256, pruned, form: 1 }, async (folder) => {
    shown.at('pruning modules')
    // depmod looks below lib/modules.
    const tree = join(folder, 'lib/modules', release)
    mkdirSync(tree, { recursive: true })
    cpSync(source, tree, { recursive: true })
    for (const path of pruned) rmSync(join(tree, path), { recursive: true, force: true })
    const said = await run(['depmod', '-e', '-F', symbols, '-b', folder, release])
    if (said.trim()) throw new KernelError(`modules are missing after pruning:\n${said.trim()}`)
  })
  const modules = join(part.folder, 'lib/modules')
  shown.done(`${release}, ${readdirSync(modules, { recursive: true }).filter((each) => String(each).endsWith('.ko')).length} modules`)
  return { release, image, modules, packages }
}

/** What the kernel's part of an image depends on. */
export const kernelInputs = ({ packages }: Kernel): string => hashOf({ packages, pruned })
