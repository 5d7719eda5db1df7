/** The releases that images are made of: a folder that mkimage.sh has filled, or folders of such within it. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ManifestError, parseManifest } from '../../oci/image-manifest.ts'
import { codeOf, failedWith } from '../../wire/errno.ts'
import { FactoryError } from './factory-error.ts'

/** Processors, as Debian, Go and OCI name them; a version may be held for each. */
export const architectures = ['amd64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

/** What requests name the processors, iPXE's names included. */
const architectureNames: Readonly<Record<string, Architecture>> = { amd64: 'amd64', x86_64: 'amd64', i386: 'amd64', arm64: 'arm64' }

/** The architecture that the name of an image has as a word, as in `metal-arm64.iso`; that of most machines without one. */
export const architectureOf = (name: string): Architecture =>
  name.split(/[-.]/).flatMap((word) => (Object.hasOwn(architectureNames, word) ? (architectureNames[word] ?? []) : []))[0] ?? 'amd64'

/** The names in requests of an architecture. */
export const namesOf = (arch: Architecture): string[] => Object.keys(architectureNames).filter((name) => architectureNames[name] === arch)

/** A release and the folder with its files. */
export interface Release {
  /** As in `v1.13.100`. */
  readonly version: string
  readonly arch: Architecture
  readonly folder: string
}

/** What mkimage.sh calls a file of a release that has the name `file` for amd64. */
export function fileNameOf({ arch }: Pick<Release, 'arch'>, file: string): string {
  if (arch === 'amd64') return file
  return file.includes('amd64') ? file.replace('amd64', arch) : `${file}-${arch}`
}

/** The path of that file. */
export const pathOf = (release: Release, file: string): string => join(release.folder, fileNameOf(release, file))

/** Where a release installs from, in its images. */
export const installFolderOf = ({ arch }: Pick<Release, 'arch'>): string => `usr/install/${arch}`

const manifestFile = 'ichor-amd64.manifest'
const longestManifest = 64 << 10

/** The releases below a folder, the oldest first. They are looked for with each request, so that a new build is found. */
export function findReleases(folder: string): Release[] {
  const folders = [folder, ...subfolders(folder)]
  const found = folders.flatMap((each) => architectures.flatMap((arch) => releaseIn(each, arch) ?? []))
  return found.sort((a, b) => Bun.semver.order(a.version.slice(1), b.version.slice(1)))
}

/** The versions of releases in their order, each once. */
export const versionsOf = (releases: readonly Release[]): string[] => [...new Set(releases.map(({ version }) => version))]

/** The release of a version, with or without "v", for an architecture. Throws FactoryError. */
export function releaseOf(folder: string, version: string, arch: Architecture = 'amd64'): Release {
  const releases = releasesOf(folder, version)
  const found = releases.find((each) => each.arch === arch)
  if (found) return found
  const others = releases.map((each) => each.arch).join(', ')
  const how = arch === 'amd64' ? 'make it with mkimage.sh' : `make it with "mkimage.sh --arch ${arch}"`
  throw new FactoryError(404, `version "${version}" is held here for ${others}, not for ${arch}: ${how}`)
}

/** The releases of a version, with or without "v", at most one for each architecture and at least one. Throws FactoryError. */
export function releasesOf(folder: string, version: string): [Release, ...Release[]] {
  if (!/^v?\d{1,5}\.\d{1,5}\.\d{1,5}(?:-[0-9A-Za-z.-]{1,64})?$/.test(version))
    throw new FactoryError(400, `version "${version.slice(0, 64)}": must be one as in v1.13.1`)
  const known = findReleases(folder)
  const same = known.filter((each) => each.version === `v${version.replace(/^v/, '')}`)
  const [first, ...others] = architectures.flatMap((arch) => same.find((each) => each.arch === arch) ?? [])
  if (first) return [first, ...others]
  throw new FactoryError(404, `version "${version}" is not held here, but ${versionsOf(known).join(', ') || 'none'}`)
}

function subfolders(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => join(folder, name))
  } catch (error) {
    throw new FactoryError(500, `read the folder of images: ${codeOf(error)}`)
  }
}

function releaseIn(folder: string, arch: Architecture): Release | undefined {
  const name = fileNameOf({ arch }, manifestFile)
  const path = join(folder, name)
  try {
    if (statSync(path).size > longestManifest) return undefined
    return { version: parseManifest(readFileSync(path, 'utf8')).version, arch, folder }
  } catch (error) {
    // A build that runs has no manifest yet, and a damaged one offers nothing.
    if (error instanceof ManifestError || failedWith(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw new FactoryError(500, `read "${name}": ${codeOf(error)}`)
  }
}
