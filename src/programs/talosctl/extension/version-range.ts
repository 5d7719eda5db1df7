/** Ranges of versions as extensions state them, in the syntax of the Go library github.com/blang/semver. */

/** A range that cannot be read. */
export class VersionRangeError extends Error {
  override name = 'VersionRangeError'
}

type Comparison = (order: number) => boolean

const comparisons: Readonly<Record<string, Comparison>> = {
  '': (order) => order === 0,
  '=': (order) => order === 0,
  '==': (order) => order === 0,
  '!': (order) => order !== 0,
  '!=': (order) => order !== 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
}

/** One condition: an operator and a version, of which the last parts may be `x`. */
const condition = /^(|==?|!=?|>=?|<=?)v?(\d{1,9})\.(?:(\d{1,9})\.(?:(\d{1,9})(-[0-9A-Za-z.-]+)?|x)|x)$/i
const rangeLimit = 1024

/**
 * Whether a version is in a range: conditions separated by blanks apply together, alternatives are separated by `||`, and an empty
 * range holds every version. Only major, minor and patch of the version count. Throws VersionRangeError.
 */
export function inRange(version: string, range: string): boolean {
  if (range.length > rangeLimit) throw new VersionRangeError(`has ${range.length} characters, more than ${rangeLimit}`)
  const plain = /^v?(\d+\.\d+\.\d+)/.exec(version)?.[1]
  if (plain === undefined) throw new VersionRangeError(`cannot be compared with version "${version}"`)
  if (range.trim() === '') return true
  // A blank may stand between the operator and its version.
  const alternatives = range.split('||').map((each) =>
    each
      .replaceAll(/([=!<>])\s+/g, '$1')
      .split(/\s+/)
      .filter(Boolean),
  )
  if (alternatives.some((each) => each.length === 0)) throw new VersionRangeError('has an empty alternative')
  return alternatives.map((each) => each.map((one) => holds(plain, one)).every(Boolean)).some(Boolean)
}

function holds(version: string, text: string): boolean {
  const [, operator = '', major = '', minor, patch, prerelease = ''] = condition.exec(text) ?? []
  if (major === '') throw new VersionRangeError(`"${text}" is no condition such as ">= 1.13.0"`)
  const compare = comparisons[operator] ?? (() => false)
  if (patch !== undefined) return compare(Bun.semver.order(version, `${major}.${minor}.${patch}${prerelease}`))
  // A version with `x` is all from its first to the first of the next.
  const first = `${major}.${minor ?? 0}.0`
  const next = minor === undefined ? `${Number(major) + 1}.0.0` : `${major}.${Number(minor) + 1}.0`
  const order = Bun.semver.order(version, first) < 0 ? -1 : Bun.semver.order(version, next) < 0 ? 0 : 1
  return compare(order)
}
