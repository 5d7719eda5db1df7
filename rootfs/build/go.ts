/**
 * Programs written in Go, from pinned modules (go.mod, go.sum) with a pinned toolchain: the same inputs give the same
 * bytes on any machine. The Go tool fetches the toolchain itself when another version is installed.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { takePackage } from '../debian/archive.ts'
import type { LockedPackage } from '../debian/lock.ts'
import { type Cached, cached, hashOf } from './cache.ts'
import { crossPackagesOf } from './host.ts'
import { type Task, task } from './progress.ts'
import { run } from './run.ts'
import { libraryFolderOf, type Target, targets } from './target.ts'

/** The toolchain every Go program is built with. */
export const goToolchain = 'go1.26.8'

/** Where a program lies in the root file system. */
export interface ImagePlace {
  path: string
  /** Other names in the same folder, as symbolic links. */
  links?: readonly string[]
  /** Other names for a program that starts itself again by the path of its file. */
  hardLinks?: readonly string[]
}

/** How a Go module becomes programs. */
export interface GoRecipe {
  /** Also the name of its program. */
  name: string
  /** Of what it is built from, as the SBOM states it. */
  version: string
  /** Where its program lies in the root file system; absent when it is not in there. */
  image?: ImagePlace | undefined
  /** Folder of go.mod, go.sum and our own sources, beside this file's parent. */
  module: string
  /** Folder of the sources where they are not beside go.mod. */
  sources?: string
  /** Program name → package. */
  programs: Record<string, string>
  /** Program name → package whose tests it runs. They are not vetted: vetting their packages takes longer than compiling them. */
  tests?: Record<string, string>
  tags?: string[]
  /** `-X` settings, `package.variable` → value. */
  settings?: Record<string, string>
  /** Linked statically against the C library with these Debian packages' headers and archives; without it there is no C at all. */
  c?: { packages: string[] }
  /** Changes the copied sources before the build; its version is part of the key. */
  prepare?: { version: number; apply(folder: string, go: GoTool): Promise<void> }
}

/** Runs the go command in a folder and returns what it prints. */
export type GoTool = (...command: string[]) => Promise<string>

const here = join(import.meta.dir, '..')

// biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query fills these in
const dpkgFormat = '${Package} ${Version}\n'

/** Builds the recipe's programs, or finds them built before. */
export async function buildGo(recipe: GoRecipe, target: Target = targets.amd64): Promise<Cached> {
  const files = filesOf(recipe)
  const { version: _, image: __, ...deciding } = recipe
  const inputs = {
    toolchain: goToolchain,
    recipe: { ...deciding, prepare: recipe.prepare?.version },
    sources: Object.fromEntries(Object.entries(files).map(([name, path]) => [name, hashOf(readFileSync(path))])),
    c: recipe.c && (await cVersions(recipe.c.packages, target)),
    form: 1,
    ...(target.arch !== 'amd64' && { arch: target.arch }),
  }
  return cached(recipe.name, inputs, async (folder) => {
    const shown = task(`building ${recipe.name}`)
    try {
      await compile(recipe, { files, folder, target }, shown)
      shown.done()
    } catch (error) {
      shown.failed()
      throw error
    }
  })
}

/** Name in the build's folder → path: module files from one folder, and sources from the same or another. */
function filesOf({ module, sources = module }: GoRecipe): Record<string, string> {
  const inside = (folder: string, wanted: RegExp): [string, string][] =>
    (readdirSync(join(here, folder), { recursive: true }) as string[])
      .filter((name) => wanted.test(name))
      .map((name) => [name, join(here, folder, name)])
  return Object.fromEntries([...inside(sources, /\.go$/), ...inside(module, /\.(mod|sum)$/)].sort(([a], [b]) => (a < b ? -1 : 1)))
}

interface Compilation {
  files: Readonly<Record<string, string>>
  folder: string
  target: Target
}

async function compile(recipe: GoRecipe, { files, folder, target }: Compilation, shown: Task): Promise<void> {
  const work = join(folder, 'source')
  await mkdir(work)
  for (const [name, path] of Object.entries(files)) await cp(path, join(work, name), { recursive: true })
  const env = {
    ...process.env,
    GOTOOLCHAIN: goToolchain,
    GOFLAGS: '-buildvcs=false',
    GOWORK: 'off',
    GOOS: 'linux',
    ...target.go,
    CGO_ENABLED: recipe.c ? '1' : '0',
    CGO_CFLAGS: '-O2 -g0',
    CGO_LDFLAGS: '-O2',
    ...(recipe.c && (await crossSettings(recipe.c.packages, target))),
  }
  let fetched = 0
  let compiled = 0
  let total = 0
  const heard = (line: string) => {
    if (line.startsWith('go: downloading')) shown.at(`${++fetched} modules fetched`)
    else if (!line.startsWith('go: ')) shown.at(`${++compiled} packages compiled of at most ${total}`)
  }
  const go: GoTool = (...command) => run(['go', ...command], { cwd: work, env, heard })
  if (recipe.prepare) await recipe.prepare.apply(work, go)
  const packages = [...Object.values(recipe.programs), ...Object.values(recipe.tests ?? {})]
  const tags = ['-tags', (recipe.tags ?? []).join(',')]
  total = (await go('list', '-deps', ...tags, ...packages)).split('\n').length
  const linking = ['-s', '-w', '-buildid=', ...Object.entries(recipe.settings ?? {}).map(([name, value]) => `-X ${name}=${value}`)]
  if (recipe.c) linking.push('-linkmode external -extldflags "-static -Wl,--build-id=none"')
  for (const [program, path] of Object.entries(recipe.programs)) {
    await go('build', '-v', '-trimpath', ...tags, '-ldflags', linking.join(' '), '-o', join(folder, program), path)
  }
  for (const [program, path] of Object.entries(recipe.tests ?? {})) {
    await go('test', '-c', '-vet=off', '-trimpath', ...tags, '-ldflags', linking.join(' '), '-o', join(folder, program), path)
  }
  const modules = await go(
    'list',
    '-deps',
    ...tags,
    '-f',
    '{{with .Module}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}',
    ...packages,
  )
  const linked = [...new Set(modules.split('\n'))].filter((line) => / v/.test(line)).sort()
  await Bun.write(join(folder, 'modules.txt'), `${linked.join('\n')}\n`)
  await rm(work, { recursive: true })
}

/** What decides about the C part: packages of this machine, and for another processor the packages for that. */
async function cVersions(packages: readonly string[], target: Target): Promise<unknown> {
  const versions = (names: readonly string[]) => run(['dpkg-query', '-W', '-f', dpkgFormat, ...names])
  if (target.arch === 'amd64') return versions(['gcc', 'binutils', 'libc6-dev', ...packages])
  const taken = await foreignPackages(packages, target)
  return [
    await versions(crossPackagesOf(target).map(({ name }) => name)),
    ...taken.map(({ name, version, sha256 }) => ({ name, version, sha256 })),
  ]
}

/** Libraries of another processor are taken apart, not installed: the packages of this machine stay as they are. */
export const foreignPackages = (packages: readonly string[], target: Target): Promise<(LockedPackage & { folder: string })[]> =>
  Promise.all(packages.map((name) => takePackage(name, undefined, () => {}, target)))

/** The C compiler of another processor, and where pkg-config finds its libraries. */
async function crossSettings(packages: readonly string[], target: Target): Promise<Record<string, string>> {
  if (target.arch === 'amd64') return {}
  const [taken, another] = await foreignPackages(packages, target)
  if (!taken || another) throw new Error('pkg-config has one root of libraries: a recipe may use one package for another processor')
  return {
    CC: target.gcc,
    PKG_CONFIG_LIBDIR: join(taken.folder, libraryFolderOf(target), 'pkgconfig'),
    PKG_CONFIG_SYSROOT_DIR: taken.folder,
    PKG_CONFIG_ALLOW_SYSTEM_CFLAGS: '1',
    PKG_CONFIG_ALLOW_SYSTEM_LIBS: '1',
  }
}

/** The modules linked into a built part, with their versions and hashes from go.sum. */
export async function linkedModules(
  recipe: GoRecipe,
  folder: string,
): Promise<{ path: string; version: string; sum?: string | undefined }[]> {
  const sums = new Map<string, string>()
  for (const line of readFileSync(join(here, recipe.module, 'go.sum'), 'utf8').split('\n')) {
    const [path, version, sum] = line.split(' ')
    if (path && version && sum && !version.endsWith('/go.mod')) sums.set(`${path} ${version}`, sum)
  }
  const lines = readFileSync(join(folder, 'modules.txt'), 'utf8').trim().split('\n')
  return lines.map((line) => {
    const [path = '', version = ''] = line.split(' ')
    return { path, version, sum: sums.get(line) }
  })
}
