/** Control groups of a node as a tree (version 2), read from an archive of /sys/fs/cgroup. */
import type { TarEntry } from '../../../wire/tar/read.ts'

/** One group: the texts of its files by name, and the groups below it. */
export interface Group {
  readonly name: string
  readonly parent?: Group | undefined
  readonly files: Map<string, string>
  readonly below: Map<string, Group>
}

const largestFile = 1 << 20
const mostGroups = 100_000

/** The tree in an archive. Files larger than any that a group has are left out. */
export async function readGroups(entries: AsyncIterable<TarEntry>): Promise<Group> {
  const root = newGroup('/')
  let count = 1
  for await (const { name, type, size, content } of entries) {
    const parts = name.split('/').filter((part) => part !== '' && part !== '.')
    const file = type === 'file' ? parts.pop() : undefined
    if (type !== 'file' && type !== 'directory') continue
    let group = root
    for (const part of parts) {
      let next = group.below.get(part)
      if (!next) {
        if (++count > mostGroups) throw new RangeError(`node has more than ${mostGroups} control groups`)
        next = newGroup(part, group)
        group.below.set(part, next)
      }
      group = next
    }
    if (file === undefined || size > largestFile) continue
    const chunks: Uint8Array[] = []
    for await (const chunk of content) chunks.push(chunk)
    group.files.set(file, Buffer.concat(chunks).toString('utf8').trim())
  }
  return root
}

function newGroup(name: string, parent?: Group): Group {
  return { name, parent, files: new Map(), below: new Map() }
}

/** Every group in order, with the branches to draw before its name. */
export function* walkGroups(
  group: Group,
  indent = '',
  branch = '',
  path = group.name,
): Generator<{ group: Group; prefix: string; path: string }> {
  yield { group, prefix: branch, path }
  const below = [...group.below.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const [index, one] of below.entries()) {
    const last = index === below.length - 1
    yield* walkGroups(
      one,
      `${indent}${last ? '    ' : '│   '}`,
      `${indent}${last ? '└──' : '├──'}`,
      `${path.replace(/\/$/, '')}/${one.name}`,
    )
  }
}
