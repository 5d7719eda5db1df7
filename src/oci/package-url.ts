/** Package URLs, by which documents about flaws name packages (github.com/package-url/purl-spec). */

/** A package, or all versions of it. */
export interface PackageUrl {
  /** Type, namespace and name, decoded, as in `deb/debian/libc6`. */
  readonly path: string
  readonly version?: string
  readonly qualifiers: ReadonlyMap<string, string>
}

const longest = 4096

/** The package that a text names; undefined for what is no package URL. */
export function parsePackageUrl(text: string): PackageUrl | undefined {
  const [whole] = text.split('#', 1)
  const [, rest = ''] = /^pkg:\/*([^/].*)$/i.exec(whole ?? '') ?? []
  if (rest === '' || text.length > longest) return undefined
  const question = rest.indexOf('?')
  const named = question < 0 ? rest : rest.slice(0, question)
  // A namespace may begin with "@", so that only one behind the last "/" leads to a version.
  const at = named.indexOf('@', named.lastIndexOf('/') + 2)
  try {
    const path = (at < 0 ? named : named.slice(0, at)).split('/').map(decodeURIComponent)
    const [type = '', ...names] = path
    if (!/^[A-Za-z][A-Za-z0-9.+-]*$/.test(type) || names.length === 0 || names.includes('')) return undefined
    const qualifiers = new Map(question < 0 ? [] : [...new URLSearchParams(rest.slice(question + 1).replaceAll('+', '%2B'))])
    return {
      path: [type.toLowerCase(), ...names].join('/'),
      ...(at >= 0 && { version: decodeURIComponent(named.slice(at + 1)) }),
      qualifiers,
    }
  } catch (error) {
    if (error instanceof URIError) return undefined
    throw error
  }
}

/** Whether a package is one of those that `wanted` names. A qualifier that only one of them has, such as the distribution, decides nothing. */
export const namesPackage = (wanted: PackageUrl, { path, version, qualifiers }: PackageUrl): boolean =>
  wanted.path === path &&
  (wanted.version === undefined || wanted.version === version) &&
  [...wanted.qualifiers].every(([key, value]) => (qualifiers.get(key) ?? value) === value)
