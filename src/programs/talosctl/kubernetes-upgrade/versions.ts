/** Versions of Kubernetes: between which an upgrade goes, and on which releases of the system. */
import { ImageReferenceError, parseReference } from '../../../oci/reference.ts'
import { UsageError } from '../failure.ts'

/** A version such as 1.36.3; a prerelease is kept only as text. */
export interface Version {
  readonly major: number
  readonly minor: number
  readonly patch: number
  readonly text: string
}

/** The version of a text such as `v1.36.3` or `1.36.3-rc.1`; undefined for anything else. */
export function versionOf(text: string): Version | undefined {
  const match = /^v?((\d+)\.(\d+)\.(\d+)(?:-[0-9A-Za-z.-]+)?)(?:\+[0-9A-Za-z.-]+)?$/.exec(text)
  if (!match) return undefined
  const [, version = '', major, minor, patch] = match
  return { major: Number(major), minor: Number(minor), patch: Number(patch), text: version }
}

/** The version of a flag. Throws UsageError. */
export function versionFrom(flag: string, text: string): Version {
  const version = versionOf(text)
  if (!version) throw new UsageError(`${flag} "${text}": must be a version such as 1.36.3`)
  return version
}

/** The version that an image is tagged with; `-fat` and `-slim` say how an image was made. */
export function versionOfImage(image: string): Version | undefined {
  return versionOf(tagOf(image).replace(/-(fat|slim)$/, ''))
}

/** `-fat` or `-slim`, as the tag of an image ends. */
export const variantOf = (image: string): string => /-(fat|slim)$/.exec(tagOf(image))?.[0] ?? ''

function tagOf(image: string): string {
  try {
    return parseReference(image).tag ?? ''
  } catch (error) {
    if (error instanceof ImageReferenceError) return ''
    throw error
  }
}

/** The reference without its digest, which does not count when images are compared. */
export const withoutDigest = (image: string): string => image.replace(/@.*$/s, '')

/** Orders versions by their numbers. */
export const compareVersions = (a: Version, b: Version): number => a.major - b.major || a.minor - b.minor || a.patch - b.patch

/** Throws unless an upgrade may go from one version to the other: within a minor, or to the next one. */
export function checkPath(from: Version, to: Version): void {
  if (from.major === to.major && (to.minor === from.minor || to.minor === from.minor + 1)) return
  const next = to.minor > from.minor + 1 ? `: upgrade to 1.${from.minor + 1} first` : ''
  throw new UsageError(`an upgrade from ${from.text} to ${to.text} is not possible, only within a minor version or to the next one${next}`)
}

/** Release of the system (`major.minor`) → minors of Kubernetes that it runs, first and last. */
const supported: Readonly<Record<string, readonly [number, number]>> = { '1.13': [31, 36] }

/** Why a release of the system cannot run a version of Kubernetes; undefined if it can. */
export function unsupportedBy(tag: string, to: Version): string | undefined {
  const system = versionOf(tag)
  const range = system && supported[`${system.major}.${system.minor}`]
  if (!range) return `release ${tag} is not known to this client: use the client of that release`
  if (to.major === 1 && to.minor >= range[0] && to.minor <= range[1]) return undefined
  return `release ${tag} runs Kubernetes 1.${range[0]} to 1.${range[1]}, not ${to.text}: upgrade the system first`
}
