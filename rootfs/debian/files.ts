/** Takes Debian packages apart to the files wanted and exactly the shared libraries these ask for. */
import { lstatSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import type { Tree } from '../../src/programs/factory/root/tree.ts'
import { type Task, task } from '../build/progress.ts'
import { libraryFolderOf, type Target, targets } from '../build/target.ts'
import { type TakenPackage, takeAhead, takePackage } from './archive.ts'
import { readElf } from './elf.ts'
import type { LockedPackage } from './lock.ts'
import { certificateBundle, certificatePackage, debianLinks, debianParts } from './parts.ts'

/** Wanted files are not in the packages. */
export class DebianFilesError extends Error {
  override name = 'DebianFilesError'
}

/** What was taken, and what differs from the lock. */
export interface DebianFiles {
  packages: TakenPackage[]
  moved: { name: string; from?: string | undefined; to: string }[]
  unused: string[]
}

/** Puts the wanted files of Debian packages and the libraries of every dynamic program into the tree. */
export async function addDebianFiles(
  tree: Tree,
  lock: ReadonlyMap<string, LockedPackage>,
  programs: readonly string[],
  target: Target = targets.amd64,
): Promise<DebianFiles> {
  const taken = new Map<string, TakenPackage>()
  let fetching: Task | undefined
  const shown = () => {
    fetching ??= task('fetching Debian packages')
    return fetching
  }
  const take = async (name: string) => {
    const there = taken.get(name)
    if (there) return there
    const got = await takePackage(name, lock.get(name), (name) => shown().at(`${name}, ${taken.size} at hand`), target)
    taken.set(name, got)
    return got
  }
  await takeAhead(lock.values(), (what) => shown().at(what), target)
  const binaries: string[] = [...programs]
  for (const part of debianParts(target)) {
    const { folder } = await take(part.package)
    for (const pattern of part.files) {
      const found = filesIn(folder).filter(({ path }) => new Bun.Glob(pattern).match(path))
      if (!found.length)
        throw new DebianFilesError(
          `Debian package "${part.package}" has no "${pattern}": rootfs/debian/parts.ts must be brought up to date`,
        )
      for (const { path, source } of found) {
        if (lstatSync(source).isSymbolicLink()) {
          tree.link(part.package, path, readlinkSync(source))
          continue
        }
        tree.file(part.package, path, source, statSync(source).mode & 0o755) // no set-user-id bits
        binaries.push(source)
      }
    }
  }
  for (const [path, target] of Object.entries(debianLinks)) tree.link('links', path, target)
  tree.text(certificatePackage, certificateBundle, certificates((await take(certificatePackage)).folder))
  await addLibraries(tree, binaries, { taken, take, lock, target })
  fetching?.done(`${taken.size} packages`)
  const moved = [...taken.values()]
    .filter((each) => lock.get(each.name)?.sha256 !== each.sha256)
    .map((each) => ({ name: each.name, from: lock.get(each.name)?.version, to: each.version }))
  return { packages: [...taken.values()], moved, unused: [...lock.keys()].filter((name) => !taken.has(name)) }
}

/** Packages so far, and how to get more. */
interface PackageSource {
  taken: Map<string, TakenPackage>
  take: (name: string) => Promise<TakenPackage>
  lock: ReadonlyMap<string, LockedPackage>
  target: Target
}

async function addLibraries(tree: Tree, programs: string[], { taken, take, lock, target }: PackageSource): Promise<void> {
  await take('libc6')
  const libraryFolder = libraryFolderOf(target)
  const linker = basename(target.linker)
  const places = new Map<string, { package: string; source: string }>()
  const indexed = new Set<string>()
  const find = async (soname: string) => {
    for (let round = 0; round < 4; round++) {
      for (const each of taken.values()) {
        if (indexed.has(each.name)) continue
        indexed.add(each.name)
        for (const { path, source } of filesIn(each.folder)) {
          if (dirname(path) === libraryFolder && /\.so(\.|$)/.test(path)) places.set(basename(path), { package: each.name, source })
        }
      }
      const found = places.get(soname)
      if (found) return found
      // Look into locked libraries first, then into libraries the taken packages depend on, one step further each round.
      const locked = [...lock.keys()].filter((name) => /^lib/.test(name) && !taken.has(name))
      const next =
        round === 0
          ? locked
          : [...taken.values()].flatMap((each) => each.depends).filter((name) => /^(lib|zlib)/.test(name) && !taken.has(name))
      for (const name of new Set(next)) await take(name)
    }
    throw new DebianFilesError(`library "${soname}" is in none of the packages taken or the libraries they depend on`)
  }
  const added = new Set<string>()
  const queue = [...programs]
  for (let source = queue.shift(); source; source = queue.shift()) {
    const bytes = readFileSync(source)
    const links = readElf(bytes)
    for (const soname of links?.needed ?? []) {
      if (soname === linker || added.has(soname)) continue
      added.add(soname)
      const found = await find(soname)
      tree.file(found.package, `${libraryFolder}/${soname}`, found.source, 0o755)
      queue.push(found.source)
    }
  }
  const c = taken.get('libc6')
  const real = c && filesIn(c.folder).find(({ path }) => path === `${libraryFolder}/${linker}`)
  if (!real) throw new DebianFilesError('Debian package "libc6" has no dynamic linker')
  tree.file('libc6', real.path, real.source, 0o755)
  const linkerPath = `/usr${target.linker}`
  tree.link('libc6', linkerPath, relative(dirname(linkerPath), real.path))
  for (const name of [...taken.keys()]) {
    const used = tree.entries().some((entry) => entry.part === name)
    if (!used) taken.delete(name)
  }
}

/** All files and links of a package taken apart, with the paths they have once /bin, /sbin and /lib are links into /usr. */
function filesIn(folder: string): { path: string; source: string }[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((each) => !each.isDirectory())
    .map((each) => {
      const source = join(each.parentPath, each.name)
      return { path: `/${source.slice(folder.length + 1)}`.replace(/^\/(bin|sbin|lib|lib64)\//, '/usr/$1/'), source }
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Every trusted certificate, in the order of their names. */
function certificates(folder: string): string {
  const files = filesIn(folder).filter(({ path }) => path.startsWith('/usr/share/ca-certificates/') && path.endsWith('.crt'))
  if (files.length < 50) throw new DebianFilesError(`Debian package "${certificatePackage}" holds only ${files.length} certificates`)
  return files.map(({ source }) => `${readFileSync(source, 'utf8').trim()}\n`).join('')
}

/** The libraries that a file of the tree needs directly, with the dynamic linker's two names. */
export function librariesOf(tree: Tree, path: string, target: Target = targets.amd64): string[] {
  const [libraryFolder, linker] = [libraryFolderOf(target), basename(target.linker)]
  const source = tree.get(path)?.source
  const links = source ? readElf(readFileSync(source)) : undefined
  if (!links?.needed.length) return []
  return [
    ...links.needed.filter((name) => name !== linker).map((name) => `${libraryFolder}/${name}`),
    `/usr${target.linker}`,
    `${libraryFolder}/${linker}`,
  ]
}
