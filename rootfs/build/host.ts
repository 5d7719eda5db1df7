/** What the build machine must have, and how it gets it. */
import { existsSync } from 'node:fs'
import { task } from './progress.ts'
import { run } from './run.ts'
import type { Target } from './target.ts'

/** A Debian package the build needs. */
export interface HostPackage {
  name: string
  why: string
  /** A file that shows it is there. */
  shown: string
}

/** Debian packages the root file system's build needs. */
export const buildPackages: readonly HostPackage[] = [
  { name: 'gcc', why: 'compiles pause and the C part of runc', shown: '/usr/bin/gcc' },
  { name: 'libc6-dev', why: 'the C library that runc is linked with', shown: '/usr/lib/x86_64-linux-gnu/libc.a' },
  { name: 'libseccomp-dev', why: 'runc filters the system calls of containers with it', shown: '/usr/lib/x86_64-linux-gnu/libseccomp.a' },
  { name: 'pkg-config', why: 'gives the Go compiler the location of libseccomp', shown: '/usr/bin/pkg-config' },
  { name: 'secilc', why: 'compiles the SELinux policy', shown: '/usr/bin/secilc' },
  { name: 'xz-utils', why: 'packs the root file system that is shipped', shown: '/usr/bin/xz' },
]

/** Debian packages that the build for another processor needs besides. */
export const crossPackagesOf = ({ arch }: Target): readonly HostPackage[] =>
  arch === 'amd64'
    ? []
    : [
        {
          name: 'gcc-aarch64-linux-gnu',
          why: 'compiles stage 0, pause and the C part of runc for arm64',
          shown: '/usr/bin/aarch64-linux-gnu-gcc',
        },
        { name: 'binutils-aarch64-linux-gnu', why: 'links them', shown: '/usr/bin/aarch64-linux-gnu-ld' },
        {
          name: 'libc6-dev-arm64-cross',
          why: 'the C library that runc is linked with for arm64',
          shown: '/usr/aarch64-linux-gnu/lib/libc.a',
        },
      ]

/** A missing tool that cannot be installed from here; the message states what to do. */
export class HostError extends Error {
  override name = 'HostError'
}

/** Makes sure that everything the build needs is there; installs missing Debian packages. */
export async function prepareHost(packages: readonly HostPackage[] = buildPackages): Promise<void> {
  if (process.arch !== 'x64') throw new HostError(`this machine is ${process.arch}: the root file system is built on x86-64 only`)
  const missing = packages.filter((each) => !existsSync(each.shown))
  const list = missing.map(({ name, why }) => `  ${name} (${why})`).join('\n')
  if (missing.length && !existsSync('/etc/debian_version'))
    throw new HostError(`missing, and this is not Debian; install what corresponds to:\n${list}`)
  if (missing.length && process.getuid?.() !== 0) {
    throw new HostError(
      `missing Debian packages; run this as root, or install them first:\n${list}\n  apt-get install ${missing.map(({ name }) => name).join(' ')}`,
    )
  }
  if (missing.length) {
    console.error(`installing Debian packages:\n${list}`)
    const shown = task('installing Debian packages')
    try {
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
      const names = missing.map(({ name }) => name)
      const install = () => run(['apt-get', '-q', '-y', '--no-install-recommends', 'install', ...names], { env })
      await install().catch(async () => {
        await run(['apt-get', '-q', 'update'], { env })
        await install()
      })
      shown.done()
    } catch (error) {
      shown.failed()
      throw error
    }
  }
  if (!existsSync('/etc/debian_version'))
    throw new HostError(
      'this is not Debian: files are taken from Debian packages with apt-get and dpkg-deb, so the root file system is built on Debian only',
    )
  await findGo()
}

/** Finds Go on the PATH or where its own archive is unpacked; it must be able to fetch the pinned toolchain by itself. */
async function findGo(): Promise<void> {
  const usual = '/usr/local/go/bin'
  if (!Bun.which('go') && existsSync(`${usual}/go`)) process.env.PATH = `${process.env.PATH}:${usual}`
  const what = 'install Go 1.21 or later from https://go.dev/dl (it fetches the version it needs by itself)'
  if (!Bun.which('go', { PATH: process.env.PATH ?? '' })) throw new HostError(`Go is missing: ${what}`)
  const version = await run(['go', 'env', 'GOVERSION'], { env: { ...process.env, GOTOOLCHAIN: 'local' } })
  const minor = Number(version.match(/^go1\.(\d+)/)?.[1] ?? 99)
  if (minor < 21) throw new HostError(`Go here is ${version.trim()}, too old to fetch the version it needs: ${what}`)
}
