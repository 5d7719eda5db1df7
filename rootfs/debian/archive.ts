/**
 * Packages from the Debian archive as apt is set up on this machine. apt checks the archive's signature over the list of
 * packages and the list's hash of each file; the hash is compared once more here, and kept.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { cached, cacheFolder, hashFile, used } from '../build/cache.ts'
import { CommandError, run } from '../build/run.ts'
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

let listed = false

/** Gets a package: as locked when it is in the cache or still in the archive, else the archive's present version. */
export async function takePackage(
  name: string,
  locked: LockedPackage | undefined,
  fetching: (what: string) => void,
): Promise<TakenPackage> {
  if (locked && existsSync(fileOf(locked))) return takeApart(locked)
  fetching(name)
  const offered = await offers(name)
  const wanted = offered.find((each) => each.version === locked?.version && each.sha256 === locked.sha256) ?? offered[0]
  if (!wanted)
    throw new ArchiveError(`Debian package "${name}" is not in the archive apt knows: run apt-get update and look at /etc/apt/sources.list`)
  if (!existsSync(fileOf(wanted))) await download(wanted)
  return takeApart(wanted)
}

/** Gets all locked packages that are not in the cache at once, which is quick; what the archive no longer has is left to takePackage. */
export async function takeAhead(locked: Iterable<LockedPackage>, fetching: (what: string) => void): Promise<void> {
  const missing = new Map([...locked].filter((each) => !existsSync(fileOf(each))).map((each) => [each.sha256, each]))
  if (missing.size < 2) return
  fetching(`${missing.size} packages`)
  const work = join(folder(), `.ahead.${process.pid}`)
  rmSync(work, { recursive: true, force: true })
  mkdirSync(work, { recursive: true })
  const download = () =>
    run(['apt-get', ...strict, '-q', 'download', ...[...missing.values()].map(({ name, version }) => `${name}=${version}`)], { cwd: work })
  try {
    await updating(download).catch(async (error) => {
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
async function updating<T>(attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt()
  } catch (error) {
    if (listed) throw error
    listed = true
    await run(['apt-get', ...strict, '-q', 'update'])
    return attempt()
  }
}

/** The versions apt offers, its own choice first. */
async function offers(name: string): Promise<LockedPackage[]> {
  const ask = async () => {
    try {
      const [policy, show] = await Promise.all([run(['apt-cache', 'policy', name]), run(['apt-cache', 'show', name])])
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
  if (first.length || listed) return first
  listed = true
  await run(['apt-get', ...strict, '-q', 'update'])
  return ask()
}

async function download(wanted: LockedPackage): Promise<void> {
  const work = join(folder(), `.${wanted.name}.${process.pid}`)
  rmSync(work, { recursive: true, force: true })
  mkdirSync(work, { recursive: true })
  try {
    await updating(() => run(['apt-get', ...strict, '-q', 'download', `${wanted.name}=${wanted.version}`], { cwd: work }))
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
