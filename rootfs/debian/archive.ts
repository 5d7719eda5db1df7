/**
 * Packages from the Debian archive as apt is set up on this machine. apt checks the archive's signature over the list of
 * packages and the list's hash of each file; the hash is compared once more here, and kept.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cached, cacheFolder, hashFile, used } from '../build/cache.ts'
import { CommandError, run } from '../build/run.ts'
import { type Arch, type Target, targets } from '../build/target.ts'
import type { LockedPackage } from './lock.ts'

/** A package at hand: where it was taken apart, and what it depends on. */
export interface TakenPackage extends LockedPackage {
  folder: string
  /** Names of packages it depends on, first alternatives. */
  depends: string[]
}

/** The archive has no such package, or what came is not what it lists. */
export class ArchiveError extends Error {
  override name = 'ArchiveError'
}

const strict = [
  '-o',
  'APT::Sandbox::User=root',
  '-o',
  'APT::Get::AllowUnauthenticated=false',
  '-o',
  'Acquire::AllowInsecureRepositories=false',
]
const folder = () => join(cacheFolder, 'debian')
const fileOf = ({ name, sha256 }: { name: string; sha256: string }) => join(folder(), `${name}-${sha256}.deb`)

const listed = new Set<Arch>()

/**
 * Settings of apt for a processor. For another one than this machine's, lists and cache are kept apart: the same sources are read, and
 * the packages that are installed here stay as they are.
 */
function settingsFor({ arch }: Target): string[] {
  if (arch === 'amd64') return strict
  const own = join(cacheFolder, `apt-${arch}`)
  const [state, cache, status] = [join(own, 'state'), join(own, 'cache'), join(own, 'status')]
  for (const each of [join(state, 'lists/partial'), join(cache, 'archives/partial')]) mkdirSync(each, { recursive: true })
  if (!existsSync(status)) writeFileSync(status, '')
  const settings = [`APT::Architecture=${arch}`, `APT::Architectures::=${arch}`]
  const folders = [`Dir::State=${state}`, `Dir::State::status=${status}`, `Dir::Cache=${cache}`]
  return [...strict, ...[...settings, ...folders].flatMap((each) => ['-o', each])]
}

/** Gets a package: as locked when it is in the cache or still in the archive, else the archive's present version. */
export async function takePackage(
  name: string,
  locked: LockedPackage | undefined,
  fetching: (what: string) => void,
  target: Target = targets.amd64,
): Promise<TakenPackage> {
  if (locked && existsSync(fileOf(locked))) return takeApart(locked)
  fetching(name)
  const offered = await offers(name, target)
  const wanted = offered.find((each) => each.version === locked?.version && each.sha256 === locked.sha256) ?? offered[0]
  if (!wanted)
    throw new ArchiveError(`Debian package "${name}" is not in the archive apt knows: run apt-get update and look at /etc/apt/sources.list`)
  if (!existsSync(fileOf(wanted))) await download(wanted, target)
  return takeApart(wanted)
}

/** Gets all locked packages that are not in the cache at once, which is quick; what the archive no longer has is left to takePackage. */
export async function takeAhead(
  locked: Iterable<LockedPackage>,
  fetching: (what: string) => void,
  target: Target = targets.amd64,
): Promise<void> {
  const missing = new Map([...locked].filter((each) => !existsSync(fileOf(each))).map((each) => [each.sha256, each]))
  if (missing.size < 2) return
  fetching(`${missing.size} packages`)
  const work = join(folder(), `.ahead.${process.pid}`)
  rmSync(work, { recursive: true, force: true })
  mkdirSync(work, { recursive: true })
  const download = () =>
    run(['apt-get', ...settingsFor(target), '-q', 'download', ...[...missing.values()].map(({ name, version }) => `${name}=${version}`)], {
      cwd: work,
    })
  try {
    await updating(target, download).catch(async (error) => {
      const gone = [...String(error).matchAll(/^E: (?:Version '.*' for '(\S+)' was not found|Unable to locate package (\S+))$/gm)]
      const names = new Set(gone.map(([, versioned, unknown]) => versioned ?? unknown))
      for (const [sha256, { name }] of missing) if (names.has(name)) missing.delete(sha256)
      if (!names.size || !missing.size) throw error
      await download()
    })
    for (const file of readdirSync(work)) {
      const { sha256 } = await hashFile(join(work, file))
      const wanted = missing.get(sha256)
      if (wanted) renameSync(join(work, file), fileOf(wanted))
    }
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Tries once more with a fresh list of packages, since the one at hand may be older than the archive. */
async function updating<T>(target: Target, attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt()
  } catch (error) {
    if (listed.has(target.arch)) throw error
    await updateLists(target)
    return attempt()
  }
}

async function updateLists(target: Target): Promise<void> {
  listed.add(target.arch)
  await run(['apt-get', ...settingsFor(target), '-q', 'update'])
}

/** The versions apt offers, its own choice first. */
async function offers(name: string, target: Target): Promise<LockedPackage[]> {
  const ask = async () => {
    try {
      const [policy = '', show = ''] = await Promise.all(
        ['policy', 'show'].map((what) => run(['apt-cache', ...settingsFor(target), what, name])),
      )
      const candidate = policy.match(/^ {2}Candidate: (\S+)$/m)?.[1]
      const found = show.split(/\n\n+/).flatMap((paragraph) => {
        const field = (key: string) => paragraph.match(new RegExp(`^${key}: (.*)$`, 'm'))?.[1]
        const version = field('Version')
        const sha256 = field('SHA256')
        return field('Package') === name && version && sha256 ? [{ name, version, sha256 }] : []
      })
      return found.sort((a, b) => Number(b.version === candidate) - Number(a.version === candidate))
    } catch (error) {
      if (error instanceof CommandError) return []
      throw error
    }
  }
  const first = await ask()
  if (first.length || listed.has(target.arch)) return first
  await updateLists(target)
  return ask()
}

async function download(wanted: LockedPackage, target: Target): Promise<void> {
  const work = join(folder(), `.${wanted.name}.${process.pid}`)
  rmSync(work, { recursive: true, force: true })
  mkdirSync(work, { recursive: true })
  try {
    const command = ['apt-get', ...settingsFor(target), '-q', 'download', `${wanted.name}=${wanted.version}`]
    await updating(target, () => run(command, { cwd: work }))
    const file = readdirSync(work).find((each) => each.endsWith('.deb'))
    if (!file) throw new ArchiveError(`Debian package "${wanted.name}": apt-get download left no file`)
    const { sha256 } = await hashFile(join(work, file))
    if (sha256 !== wanted.sha256)
      throw new ArchiveError(`Debian package "${wanted.name}": SHA-256 is ${sha256}, the archive lists ${wanted.sha256}`)
    renameSync(join(work, file), fileOf(wanted))
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

async function takeApart(taken: LockedPackage): Promise<TakenPackage> {
  const file = fileOf(taken)
  used(file)
  const part = await cached(`debian-${taken.name}`, { sha256: taken.sha256, form: 1 }, async (into) => {
    const { sha256 } = await hashFile(file)
    if (sha256 !== taken.sha256) throw new ArchiveError(`"${file}" is damaged: delete it`)
    await run(['dpkg-deb', '-x', file, join(into, 'files')])
    await Bun.write(join(into, 'depends'), await run(['dpkg-deb', '-f', file, 'Pre-Depends', 'Depends']))
  })
  const depends = (await Bun.file(join(part.folder, 'depends')).text())
    .replace(/^[A-Za-z-]+:/gm, ',')
    .split(/[,\n]/)
    .map((each) => each.trim().match(/^[a-z0-9][a-z0-9+.-]+/)?.[0] ?? '')
    .filter(Boolean)
  return { ...taken, folder: join(part.folder, 'files'), depends: [...new Set(depends)] }
}
