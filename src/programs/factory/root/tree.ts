/** What the root file system holds, before it is packed: a list of entries with absolute paths, parents implied. */

/** One entry; a file's bytes are given or lie in a file of the build machine. */
export interface TreeEntry {
  /** Absolute path in the image. */
  path: string
  type: 'file' | 'dir' | 'symlink'
  mode: number
  uid?: number | undefined
  gid?: number | undefined
  /** Its bytes on the build machine. */
  source?: string
  bytes?: Uint8Array
  target?: string | undefined
  /** A file that is one more name of the file at this path. */
  linkTo?: string | undefined
  /** Which part it belongs to, for the table and the SBOM. */
  part: string
}

/** The file on the build machine with the bytes of an entry; throws TreeError for one that has none of its own. */
export function sourceOf(entry: TreeEntry): string {
  if (entry.source === undefined) throw new TreeError(`path "${entry.path}" of ${entry.part} has no content of its own`)
  return entry.source
}

/** Bytes of a file of the tree. */
export const contentSize = (entry: TreeEntry): number => entry.bytes?.length ?? Bun.file(sourceOf(entry)).size

/** Two parts want different things at one path, or a path is no path. */
export class TreeError extends Error {
  override name = 'TreeError'
}

/** Collects entries; each path once. */
export class Tree {
  readonly #entries = new Map<string, TreeEntry>()

  /** A file with given bytes or text. */
  text(part: string, path: string, text: string | Uint8Array, mode = 0o644): void {
    this.add({ path, type: 'file', mode, bytes: typeof text === 'string' ? Buffer.from(text) : text, part })
  }

  /** A file copied from the build machine. */
  file(part: string, path: string, source: string, mode: number): void {
    this.add({ path, type: 'file', mode, source, part })
  }

  /** A symbolic link. */
  link(part: string, path: string, target: string): void {
    this.add({ path, type: 'symlink', mode: 0o777, target, part })
  }

  /** A directory; those above other entries need not be named. */
  dir(part: string, path: string, mode = 0o755): void {
    this.add({ path, type: 'dir', mode, part })
  }

  /** Any entry. A directory may be named again. */
  add(entry: TreeEntry): void {
    if (
      !/^\/[^\0]*[^/\0]$/.test(entry.path) ||
      entry.path.split('/').some((name, at) => at > 0 && (!name || name === '.' || name === '..'))
    ) {
      throw new TreeError(`path "${entry.path}" of ${entry.part}: must be absolute and plain`)
    }
    const there = this.#entries.get(entry.path)
    if (there && !(there.type === 'dir' && entry.type === 'dir')) {
      throw new TreeError(`path "${entry.path}" is wanted by ${there.part} and by ${entry.part}`)
    }
    if (!there) this.#entries.set(entry.path, entry)
  }

  /** Bytes in place of what a file has. */
  replace(part: string, path: string, bytes: Uint8Array): void {
    this.#entries.delete(path)
    this.text(part, path, bytes)
  }

  /** What is at a path. */
  get(path: string): TreeEntry | undefined {
    return this.#entries.get(path)
  }

  /** Resolves paths: follows links, also in the middle of a path; undefined when a link is dangling. */
  follower(): (path: string) => TreeEntry | undefined {
    const all = new Map(this.entries().map((entry) => [entry.path, entry]))
    return (path) => {
      let left = path.split('/').filter(Boolean)
      let at: string[] = []
      for (let steps = 0; steps < 256; steps++) {
        const name = left.shift()
        if (name === undefined) return all.get(`/${at.join('/')}`)
        if (name === '.') continue
        if (name === '..') {
          at.pop()
          continue
        }
        at.push(name)
        const entry = all.get(`/${at.join('/')}`)
        if (entry?.type !== 'symlink') continue
        const target = entry.target ?? ''
        at = target.startsWith('/') ? [] : at.slice(0, -1)
        left = [...target.split('/').filter(Boolean), ...left]
      }
      return undefined
    }
  }

  /** All entries with their parents, sorted by path bytes. */
  entries(): TreeEntry[] {
    const all = new Map(this.#entries)
    for (const path of this.#entries.keys()) {
      for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
        const parent = path.slice(0, slash)
        const there = all.get(parent)
        if (!there) all.set(parent, { path: parent, type: 'dir', mode: 0o755, part: 'base' })
        else if (there.type !== 'dir') throw new TreeError(`path "${path}" lies below "${parent}", which is no directory`)
      }
    }
    return [...all.values()].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)))
  }
}
