/** Tables of kmod in binary form (kmod's libkmod/libkmod-index.c): a tree of prefixes, whose nodes lead to values in order of priority. */

/** A value under a key. */
export interface IndexEntry {
  readonly key: string
  readonly value: string
  /** Of several values under a key the one with the lowest number comes first. */
  readonly priority: number
}

interface Node {
  prefix: string
  values: IndexEntry[]
  /** By the code of the character that leads to them. */
  children: Map<number, Node>
}

const head = [0xb007f457, 0x00020001]
const flags = { prefix: 0x80000000, values: 0x40000000, children: 0x20000000 }
const offsetLimit = 0x0fffffff

/** The bytes of a table. Keys are ASCII without zeros; they have at most as many characters as nodes may lie below each other. */
export function formatIndex(entries: Iterable<IndexEntry>): Buffer {
  const root: Node = { prefix: '', values: [], children: new Map() }
  for (const entry of entries) insert(root, entry)
  const written = new IndexWriter()
  const place = written.node(root)
  return written.finish(place)
}

function insert(root: Node, entry: IndexEntry): void {
  const { key } = entry
  let node = root
  for (let at = 0; ; ) {
    const { prefix } = node
    let same = 0
    while (same < prefix.length && prefix[same] === key[at + same]) same++
    if (same < prefix.length) {
      const below: Node = { ...node, prefix: prefix.slice(same + 1) }
      node.prefix = prefix.slice(0, same)
      node.values = []
      node.children = new Map([[prefix.charCodeAt(same), below]])
    }
    at += same
    if (at === key.length) {
      node.values.push(entry)
      return
    }
    const code = key.charCodeAt(at++)
    const child = node.children.get(code)
    if (!child) {
      node.children.set(code, { prefix: key.slice(at), values: [entry], children: new Map() })
      return
    }
    node = child
  }
}

/** Writes nodes behind those below them. */
class IndexWriter {
  readonly #parts: Buffer[] = []
  #length = (head.length + 1) * 4

  /** Writes a node; where it begins, and what it has. */
  node({ prefix, values, children }: Node): number {
    const codes = [...children.keys()]
    const [first, last] = [Math.min(...codes), Math.max(...codes)]
    const places = codes.length === 0 ? [] : Array.from({ length: last - first + 1 }, (_, at) => this.#below(children.get(first + at)))
    const place = this.#length
    if (prefix !== '') this.#text(prefix)
    if (places.length > 0) {
      this.#add(Buffer.of(first, last))
      for (const each of places) this.#number(each)
    }
    if (values.length > 0) {
      this.#number(values.length)
      // Of values with one priority kmod has the one that came last first.
      for (const { priority, value } of values.toReversed().sort((a, b) => a.priority - b.priority)) {
        this.#number(priority)
        this.#text(value)
      }
    }
    if (place > offsetLimit) throw new RangeError(`a table of modules has more than ${offsetLimit} bytes`)
    const has = (what: { readonly length: number }, flag: number) => (what.length > 0 ? flag : 0)
    return place + has(prefix, flags.prefix) + has(places, flags.children) + has(values, flags.values)
  }

  finish(root: number): Buffer {
    const start = Buffer.alloc((head.length + 1) * 4)
    for (const [at, value] of [...head, root].entries()) start.writeUInt32BE(value, at * 4)
    return Buffer.concat([start, ...this.#parts])
  }

  #below(node: Node | undefined): number {
    return node ? this.node(node) : 0
  }

  #text(text: string): void {
    this.#add(Buffer.from(`${text}\0`, 'latin1'))
  }

  #number(value: number): void {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    this.#add(bytes)
  }

  #add(bytes: Buffer): void {
    this.#parts.push(bytes)
    this.#length += bytes.length
  }
}
