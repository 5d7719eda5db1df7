/** The releases that images are made of: a folder that mkimage.sh has filled, or folders of such within it. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ManifestError, parseManifest } from '../../oci/image-manifest.ts'
import { codeOf, failedWith } from '../../wire/errno.ts'
import { FactoryError } from './factory-error.ts'

/** A release and the folder with its files. */
export interface Release {
  /** As in `v1.13.100`. */
  readonly version: string
  readonly folder: string
}

const manifestName = 'ichor-amd64.manifest'
const longestManifest = 64 << 10

/** The releases below a folder, the oldest first. They are looked for with each request, so that a new build is found. */
export function findReleases(folder: string): Release[] {
  const folders = [folder, ...subfolders(folder)]
  return folders.flatMap((each) => releaseIn(each) ?? []).sort((a, b) => Bun.semver.order(a.version.slice(1), b.version.slice(1)))
}

/** The release of a version, with or without "v". Throws FactoryError. */
export function releaseOf(folder: string, version: string): Release {
  if (!/^v?\d{1,5}\.\d{1,5}\.\d{1,5}(?:-[0-9A-Za-z.-]{1,64})?$/.test(version))
    throw new FactoryError(400, `version "${version.slice(0, 64)}": must be one as in v1.13.1`)
  const known = findReleases(folder)
  const found = known.find((each) => each.version === `v${version.replace(/^v/, '')}`)
  if (found) return found
  throw new FactoryError(404, `version "${version}" is not held here, but ${known.map((each) => each.version).join(', ') || 'none'}`)
}

function subfolders(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => join(folder, name))
  } catch (error) {
    throw new FactoryError(500, `read the folder of images: ${codeOf(error)}`)
  }
}

function releaseIn(folder: string): Release | undefined {
  const path = join(folder, manifestName)
  try {
    if (statSync(path).size > longestManifest) return undefined
    return { version: parseManifest(readFileSync(path, 'utf8')).version, folder }
  } catch (error) {
    // A build that runs has no manifest yet, and a damaged one offers nothing.
    if (error instanceof ManifestError || failedWith(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw new FactoryError(500, `read "${manifestName}": ${codeOf(error)}`)
  }
}
