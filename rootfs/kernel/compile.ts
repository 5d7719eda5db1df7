/** The hardened kernel: Debian's sources with the options of rootfs/kernel/options, compiled and kept by their content. */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { basename, join } from 'node:path'
import { cached, hashOf } from '../build/cache.ts'
import type { HostPackage } from '../build/host.ts'
import { run } from '../build/run.ts'
import type { TakenPackage } from '../debian/archive.ts'
import { buildEnvironment, configure, configurePackages, unpackSource } from './configure.ts'
import { fragments } from './options.ts'

/** What compiles a configured tree. */
export const compilePackages: readonly HostPackage[] = [
  ...configurePackages,
  { name: 'bc', why: 'computes constants of the kernel', shown: '/usr/bin/bc' },
  { name: 'kmod', why: 'lists the modules of the kernel', shown: '/usr/sbin/depmod' },
  { name: 'libelf-dev', why: 'checks the code of the kernel and reads its types', shown: '/usr/include/libelf.h' },
  { name: 'libssl-dev', why: 'signs the modules of the kernel', shown: '/usr/include/openssl/ssl.h' },
  { name: 'openssl', why: 'makes the key that signs them', shown: '/usr/bin/openssl' },
]

/** A kernel as packages have it. */
export interface CompiledKernel {
  /** The release, as printed by `uname -r`. */
  release: string
  /** The bootable file. */
  image: string
  /** The folder of its modules, with `kernel/…` and `modules.builtin`. */
  modules: string
  /** What it was made of, as a hash. */
  content: string
}

/** Where sources are unpacked and compiled: gigabytes, which a file system in memory may not hold. */
const workFolder = () => mkdtempSync(join(process.env.TMPDIR ?? '/var/tmp', 'ichor-kernel-'))

/**
 * Compiles the kernel, or takes it from the cache. The key that signs its modules is made for this build, in memory, and is gone
 * afterwards, so that no other module is ever accepted; two builds differ in that key and its signatures only.
 */
export async function compiledKernel(source: TakenPackage, at: (what: string) => void): Promise<CompiledKernel> {
  const options = fragments.map((path) => readFileSync(path, 'utf8'))
  const compiler = (await run(['gcc', '--version'])).split('\n')[0]
  const part = await cached('hardened-kernel', { source: source.sha256, options: hashOf(options), compiler, form: 1 }, async (folder) => {
    const [work, memory] = [workFolder(), mkdtempSync('/dev/shm/ichor-kernel-')]
    try {
      at('unpacking the sources')
      const tree = await unpackSource(source, work)
      at('merging the options')
      await configure(tree)
      symlinkSync(join(memory, 'signing_key.pem'), join(tree, 'certs/signing_key.pem'))
      at('compiling, which takes about an hour of processor time')
      const make = (...args: string[]) => run(['make', '-s', ...args], { cwd: tree, env: buildEnvironment() })
      await make(`-j${availableParallelism() + 1}`, 'bzImage', 'modules')
      at('signing the modules')
      await make(`INSTALL_MOD_PATH=${folder}`, 'INSTALL_MOD_STRIP=1', 'modules_install')
      const release = readFileSync(join(tree, 'include/config/kernel.release'), 'utf8').trim()
      for (const link of ['build', 'source']) rmSync(join(folder, 'lib/modules', release, link), { force: true })
      mkdirSync(join(folder, 'boot'))
      copyFileSync(join(tree, 'arch/x86/boot/bzImage'), join(folder, 'boot/vmlinuz'))
      copyFileSync(join(tree, 'include/config/kernel.release'), join(folder, 'boot/release'))
      copyFileSync(join(tree, '.config'), join(folder, 'boot/config'))
    } finally {
      for (const each of [memory, work]) rmSync(each, { recursive: true, force: true })
    }
  })
  const release = readFileSync(join(part.folder, 'boot/release'), 'utf8').trim()
  return {
    release,
    image: join(part.folder, 'boot/vmlinuz'),
    modules: join(part.folder, 'lib/modules', release),
    content: basename(part.folder),
  }
}
