/**
 * The flags, feature gates and configuration fields of the built-in Kubernetes programs and etcd, from the text that
 * `bun run settings` makes of their packages (settings.txt): a heading for each list, a line for each item, fields of a map
 * indented below it.
 */
import text from './settings.txt' with { type: 'text' }

/** A program whose flags are known. */
export type Program = 'kubelet' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler' | 'kube-proxy' | 'etcd'

/** A field of a configuration file: its type, and the fields of a map. */
export interface Field {
  readonly type: string
  readonly fields?: ReadonlyMap<string, Field>
}

interface Settings {
  /** Releases by their project. */
  readonly versions: ReadonlyMap<string, string>
  /** Types of flags by program and name. */
  readonly flags: ReadonlyMap<string, ReadonlyMap<string, string>>
  readonly gates: ReadonlySet<string>
  /** Fields of the kubelet's configuration file. */
  readonly kubelet: ReadonlyMap<string, Field>
}

let known: Settings | undefined

/** Parsed once, on first use. */
export const settings = (): Settings => (known ??= read(text))

function read(source: string): Settings {
  const lines = source.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const parts = new Map<string, string[]>()
  let last: string[] = []
  for (const line of lines) {
    if (line.startsWith(' ')) last.push(line.slice(2))
    else {
      last = []
      parts.set(line, last)
    }
  }
  const pairs = (name: string) => new Map((parts.get(name) ?? []).map((line) => line.split(' ') as [string, string]))
  const flags = [...parts.keys()].filter((name) => name.startsWith('flags '))
  return {
    versions: pairs('versions'),
    flags: new Map(flags.map((name) => [name.slice('flags '.length), pairs(name)])),
    gates: new Set(parts.get('gates')),
    kubelet: fields(parts.get('fields kubelet') ?? [], 0).fields,
  }
}

/** The fields that are indented as deep as the line at `from`, and the line after them. */
function fields(lines: readonly string[], from: number): { fields: Map<string, Field>; next: number } {
  const depth = depthOf(lines[from] ?? '')
  const found = new Map<string, Field>()
  let at = from
  for (let line = lines[at]; line !== undefined && depthOf(line) === depth; line = lines[at]) {
    const [name = '', type = ''] = line.trim().split(' ')
    at++
    if (depthOf(lines[at] ?? '') > depth) {
      const inside = fields(lines, at)
      found.set(name, { type, fields: inside.fields })
      at = inside.next
    } else found.set(name, { type })
  }
  return { fields: found, next: at }
}

const depthOf = (line: string) => line.length - line.trimStart().length
