/** `debian.lock`: the Debian packages the root file system was last made of, one `name version sha256` a line. */

/** One package as it was taken. */
export interface LockedPackage {
  name: string
  version: string
  sha256: string
}

/** The lock file has a line that is none. */
export class LockError extends Error {
  override name = 'LockError'
}

const line = /^([a-z0-9][a-z0-9+.-]+) ([0-9][A-Za-z0-9.+~:-]*) ([0-9a-f]{64})$/

/** Reads a lock file; `#` begins a comment. */
export function parseLock(text: string): Map<string, LockedPackage> {
  const packages = new Map<string, LockedPackage>()
  text.split('\n').forEach((raw, at) => {
    const content = raw.replace(/#.*/, '').trim()
    if (!content) return
    const [, name, version, sha256] = content.match(line) ?? []
    if (!name || !version || !sha256) throw new LockError(`debian.lock line ${at + 1}: must be "name version sha256": ${raw.slice(0, 120)}`)
    if (packages.has(name)) throw new LockError(`debian.lock line ${at + 1}: ${name} is there twice`)
    packages.set(name, { name, version, sha256 })
  })
  return packages
}

/** Writes a lock file, sorted by name. */
export function formatLock(packages: Iterable<LockedPackage>): string {
  const sorted = [...packages].sort((a, b) => (a.name < b.name ? -1 : 1))
  const head = '# Debian packages taken apart for the root file system; written by `bun run build:rootfs --lock`.\n'
  return head + sorted.map(({ name, version, sha256 }) => `${name} ${version} ${sha256}\n`).join('')
}
