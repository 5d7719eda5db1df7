/**
 * The flags, feature gates and configuration fields of the Kubernetes programs of several minors, and of etcd, from the texts that
 * `bun run settings` makes of their packages (settings/): a heading for each list, a line for each item, fields of a map
 * indented below it.
 */
import { kubernetesInside } from '../../../release.ts'
import minor34 from './settings/1.34.txt' with { type: 'text' }
import minor35 from './settings/1.35.txt' with { type: 'text' }
import minor36 from './settings/1.36.txt' with { type: 'text' }

const texts: Readonly<Record<string, string>> = { '1.34': minor34, '1.35': minor35, '1.36': minor36 }

/** The minors whose settings are known, as in `1.35`. */
export const knownMinors: readonly string[] = Object.keys(texts)

/** A program whose flags are known. */
export type Program = 'kubelet' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler' | 'kube-proxy' | 'etcd'

/** A field of a configuration file: its type, and the fields of a map. */
export interface Field {
  readonly type: string
  readonly fields?: ReadonlyMap<string, Field>
}

/** What the programs of a release accept. */
export interface Settings {
  /** Releases by their project: `kubernetes` and `etcd`. */
  readonly versions: ReadonlyMap<string, string>
  /** Types of flags by program and name. */
  readonly flags: ReadonlyMap<string, ReadonlyMap<string, string>>
  readonly gates: ReadonlySet<string>
  /** Fields of the kubelet's configuration file. */
  readonly kubelet: ReadonlyMap<string, Field>
}

const known = new Map<string, Settings>()

/** The settings of the minor that a version belongs to, as in `1.35.4`; undefined for other minors. Parsed once, on first use. */
export function settingsOf(version: string): Settings | undefined {
  const minor = version.split('.', 2).join('.')
  const text = Object.hasOwn(texts, minor) ? texts[minor] : undefined
  if (text === undefined) return undefined
  const found = known.get(minor) ?? read(text)
  known.set(minor, found)
  return found
}

/** The settings of the release inside. */
export function settings(): Settings {
  const inside = settingsOf(kubernetesInside)
  if (!inside) throw new TypeError(`the settings of Kubernetes ${kubernetesInside} are not recorded`)
  return inside
}

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
