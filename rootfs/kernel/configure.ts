/** Debian's sources of the kernel, and the options that the fragments give it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { HostPackage } from '../build/host.ts'
import { run } from '../build/run.ts'
import { type TakenPackage, takePackage } from '../debian/archive.ts'
import { formatLock, parseLock } from '../debian/lock.ts'
import { complaints, type Finding, judge } from './kspp.ts'
import { fragments, missed, type Options, optionsIn, requestedOptions } from './options.ts'

/** The sources or their options are not what an image needs. */
export class HardenedKernelError extends Error {
  override name = 'HardenedKernelError'
}

/** What turns sources into a `.config`. */
export const configurePackages: readonly HostPackage[] = [
  { name: 'make', why: 'runs the build of the kernel', shown: '/usr/bin/make' },
  { name: 'flex', why: 'is needed by the kernel to read its options', shown: '/usr/bin/flex' },
  { name: 'bison', why: 'likewise', shown: '/usr/bin/bison' },
  {
    name: 'gcc-12-plugin-dev',
    why: 'clears the stack of the kernel by a plugin',
    shown: '/usr/lib/gcc/x86_64-linux-gnu/12/plugin/include/gcc-plugin.h',
  },
  { name: 'pahole', why: 'describes the types of the kernel for programs of eBPF', shown: '/usr/bin/pahole' },
]

/** The package of the sources. */
const sourcePackage = 'linux-source-6.1'
const lockPath = join(import.meta.dir, 'source.lock')

/** How the package of the sources is taken. */
export interface SourceOptions {
  /** Use the current archive and rewrite source.lock. */
  relock?: boolean
  /** Take exactly what source.lock names, or nothing. */
  locked?: boolean
}

/** Takes the package that `source.lock` names, or the archive's present one. */
export async function takeSource({ relock = false, locked = false }: SourceOptions, at: (what: string) => void): Promise<TakenPackage> {
  const before = relock ? undefined : parseLock(readFileSync(lockPath, 'utf8')).get(sourcePackage)
  const taken = await takePackage(sourcePackage, before, at)
  if (before && before.sha256 !== taken.sha256) {
    const message = `Debian package ${sourcePackage}: the archive has moved on from ${before.version} to ${taken.version}`
    if (locked) throw new HardenedKernelError(`${message}: --unlocked accepts the newer one, --lock rewrites rootfs/kernel/source.lock`)
    console.error(message)
  }
  if (relock)
    writeFileSync(
      lockPath,
      formatLock([taken]).replace(/^#.*/, '# The sources of the hardened kernel; written by `bun rootfs/kernel.ts --lock`.'),
    )
  return taken
}

/** Unpacks the sources into a folder, which must be there; gives the top of their tree. */
export async function unpackSource({ folder, name }: TakenPackage, into: string): Promise<string> {
  await run(['tar', '-C', into, '-xf', join(folder, 'usr/src', `${name}.tar.xz`)])
  return join(into, name)
}

/** A configured tree: its options and what was found about them. */
export interface Configured {
  readonly options: Options
  readonly findings: readonly Finding[]
}

/**
 * Merges the fragments as the kernel does it, with its defaults for everything else. Throws HardenedKernelError when an option did
 * not take effect, or when a requirement of the Kernel Self Protection Project is not met without a reason.
 */
export async function configure(tree: string): Promise<Configured> {
  await run(['scripts/kconfig/merge_config.sh', '-m', ...fragments], { cwd: tree, env: buildEnvironment() })
  await run(['make', 'olddefconfig'], { cwd: tree, env: buildEnvironment() })
  const options = optionsIn(readFileSync(join(tree, '.config'), 'utf8'), '.config')
  const findings = judge(options)
  const wrong = [...missed(requestedOptions(), options), ...complaints(findings)]
  if (wrong.length) throw new HardenedKernelError(`the options of the kernel are not what rootfs/kernel requests:\n  ${wrong.join('\n  ')}`)
  return { options, findings }
}

/** What would make two builds differ is the same for all: time, names, language. */
export const buildEnvironment = (): Record<string, string | undefined> => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  TMPDIR: process.env.TMPDIR,
  LC_ALL: 'C',
  TZ: 'UTC',
  KBUILD_BUILD_TIMESTAMP: 'Thu Jan  1 00:00:00 UTC 1970',
  KBUILD_BUILD_USER: 'ichor',
  KBUILD_BUILD_HOST: 'ichor',
  KBUILD_BUILD_VERSION: '1',
})
