/**
 * How two configurations differ in meaning. Comments, the order of keys and documents, quoting and anchors are no difference; the
 * order of a list is one.
 */

import { isObject } from '../../../document/is-object.ts'
import { formatPath, type Path } from '../../../document/path.ts'
import type { ConfigContainer } from '../container.ts'
import { V1Alpha1 } from '../documents/v1alpha1.ts'

/** One value that was added, removed or changed. */
export interface Change {
  /** The document's kind and name; empty for the v1alpha1 document. */
  readonly document: string
  readonly kind: string
  readonly path: Path
  /** Undefined where there was, or is, nothing. */
  readonly before?: unknown
  readonly after?: unknown
}

type Tree = Readonly<Record<string, unknown>>
type Leaf = Pick<Change, 'path' | 'before' | 'after'>

/** Lists whose lengths multiply to more are compared item by item. */
const listLimit = 1_000_000

/** All differences, in the order of the documents. */
export function changesBetween(before: ConfigContainer | undefined, after: ConfigContainer): Change[] {
  const [old, now] = [documentsOf(before), documentsOf(after)]
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((key) => {
    const [{ kind, label } = { kind: '', label: '' }, was, is] = [now.get(key) ?? old.get(key), old.get(key), now.get(key)]
    const leaves = [...differences(was?.value, is?.value, [])]
    return leaves.map((leaf) => ({ document: label, kind, ...leaf }))
  })
}

/** Whether a change is at or below one of these paths of the v1alpha1 document, as `machine.network`. */
export function isBelow({ kind, path }: Change, prefixes: readonly string[]): boolean {
  const text = formatPath(path)
  return (
    kind === V1Alpha1.kind &&
    prefixes.some(
      (prefix) => text === prefix || text.startsWith(`${prefix}.`) || text.startsWith(`${prefix}[`) || prefix.startsWith(`${text}.`),
    )
  )
}

function documentsOf(config: ConfigContainer | undefined): Map<string, { kind: string; label: string; value: unknown }> {
  return new Map(
    (config?.documents ?? []).map(({ kind, name, label, value }) => [
      `${kind.kind}/${name ?? ''}`,
      { kind: kind.kind, label: kind === V1Alpha1 ? '' : label, value },
    ]),
  )
}

/** Where two values of a configuration differ, with lists as a whole. */
export function changedPlaces(before: unknown, after: unknown, at: Path): Path[] {
  const places = [...differences(before, after, at)].map(({ path }) => {
    const index = path.findIndex((step) => typeof step === 'number')
    return index < 0 ? path : path.slice(0, index)
  })
  return [...new Map(places.map((place) => [formatPath(place), place])).values()]
}

function* differences(before: unknown, after: unknown, path: Path): Generator<Leaf> {
  if (Bun.deepEquals(before, after)) return
  if (Array.isArray(before) && Array.isArray(after)) return yield* listDifferences(before, after, path)
  const [old, now] = [treeOf(before), treeOf(after)]
  if (!(old && now) && !(old && after === undefined) && !(now && before === undefined)) {
    yield { path, before, after }
    return
  }
  const keys = new Set([...Object.keys(old ?? {}), ...Object.keys(now ?? {})])
  if (keys.size === 0) yield { path, before, after }
  for (const key of keys) yield* differences(old?.[key], now?.[key], [...path, key])
}

/** A map, or a list that was added or removed as a whole, by its keys. */
function treeOf(value: unknown): Tree | undefined {
  return isObject(value) ? value : undefined
}

/** Items added and removed between those that stayed; equal numbers of both at one place are changed items. */
function* listDifferences(before: readonly unknown[], after: readonly unknown[], path: Path): Generator<Leaf> {
  let [i, j] = [0, 0]
  for (const [oldEnd, newEnd] of [...matches(before, after), [before.length, after.length] as const]) {
    while (i < oldEnd && j < newEnd) yield* differences(before[i++], after[j], [...path, j++])
    while (i < oldEnd) yield { path: [...path, i], before: before[i++], after: undefined }
    while (j < newEnd) yield { path: [...path, j], before: undefined, after: after[j++] }
    i++
    j++
  }
}

/** The positions of a longest common subsequence. */
function matches(before: readonly unknown[], after: readonly unknown[]): [number, number][] {
  const [a, b] = [before.map((item) => JSON.stringify(item)), after.map((item) => JSON.stringify(item))]
  if (a.length * b.length > listLimit) return []
  const best = a.map(() => new Uint32Array(b.length))
  /** The length of a longest common subsequence from these positions on: nothing is left behind the last of either. */
  const longest = (i: number, j: number) => best[i]?.[j] ?? 0
  for (const [i, row] of [...best.entries()].reverse())
    for (let j = b.length - 1; j >= 0; j--)
      row[j] = a[i] === b[j] ? longest(i + 1, j + 1) + 1 : Math.max(longest(i + 1, j), longest(i, j + 1))
  const found: [number, number][] = []
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) found.push([i++, j++])
    else if (longest(i + 1, j) >= longest(i, j + 1)) i++
    else j++
  }
  return found
}
