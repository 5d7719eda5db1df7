/**
 * Strategic merge: a patch has the shape of what it changes.
 *
 * Maps are merged, scalars replaced, and lists appended to without repeating items, except where a declaration makes a list
 * replaced or identifies its items by a key. `$patch: delete` removes a node, `$patch: replace` replaces it.
 */
import { isMap, isScalar, isSeq, type Node, Pair, type YAMLMap, type YAMLSeq } from 'yaml'
import { notedAt, unwrap } from '../shape.ts'
import type { YamlDocument } from '../stream.ts'
import { detach, isEmpty, keyOf, pairOf, sameNode, textOf } from './node.ts'

/** The `$patch` directive of a map, which applies to the node it matches. */
export function directive(node: unknown): 'delete' | 'replace' | undefined {
  const word = isMap(node) ? textOf(node, '$patch') : undefined
  return word === 'delete' || word === 'replace' ? word : undefined
}

/** Merges a patch into a map. Both are modified: pass copies. */
export function mergeMap(target: YAMLMap, patch: YAMLMap, schema: unknown): void {
  for (const pair of patch.items) {
    const key = keyOf(pair)
    if (key === '$patch') continue
    const existing = pairOf(target, key)
    const inner = schemaAt(schema, key)
    const value = pair.value as Node | null
    if (directive(value) === 'delete') {
      if (existing) target.items.splice(target.items.indexOf(existing), 1)
    } else if (isEmpty(value)) {
      if (!existing) target.items.push(pair)
    } else if (!existing) {
      const clean = cleaned(value)
      if (clean) target.items.push(new Pair(pair.key, clean))
    } else if (value) {
      existing.value = mergeValue(existing.value as Node | null, value, inner)
    }
  }
}

function mergeValue(target: Node | null, patch: Node, schema: unknown): Node | null {
  if (isMap(target) && isMap(patch)) {
    if (directive(patch) === 'replace' || mergeRule(schema) === 'replace') return cleaned(patch) ?? null
    if (target.items.length === 0) target.flow = false
    mergeMap(target, patch, schema)
    return target
  }
  if (isSeq(target) && isSeq(patch)) {
    mergeList(target, patch, schema)
    return target
  }
  const value = cleaned(patch)
  if (value && target && isScalar(value) && !value.comment && target.comment) value.comment = target.comment
  return value ?? null
}

function mergeList(target: YAMLSeq, patch: YAMLSeq, schema: unknown): void {
  const rule = mergeRule(schema)
  const replaces = patch.items.some((item) => isMap(item) && directive(item) === 'replace' && item.items.length === 1)
  if (replaces || rule === 'replace') {
    target.items = patch.items.filter((item) => !directive(item)).map((item) => cleaned(item as Node))
    if (target.items.length) target.flow = false
    return
  }
  if (target.items.length === 0) target.flow = false
  for (const item of patch.items) {
    if (directive(item) === 'delete') {
      target.items = target.items.filter((each) => !selects(item as YAMLMap, each))
      continue
    }
    const index = isMap(item) ? target.items.findIndex((each) => sameKey(item, each, Array.isArray(rule) ? rule : [])) : -1
    if (index >= 0) {
      target.items[index] = mergeValue(target.items[index] as Node, item as Node, unwrap(schema)?.item)
    } else {
      const clean = cleaned(item as Node)
      if (clean && !target.items.some((each) => sameNode(each, clean))) target.items.push(clean)
    }
  }
}

/** Whether an item has everything that a `$patch: delete` item names. */
function selects(selector: YAMLMap, item: unknown): boolean {
  const wanted = selector.items.filter((pair) => keyOf(pair) !== '$patch')
  return isMap(item) && wanted.length > 0 && wanted.every((pair) => sameNode(pair.value, pairOf(item, keyOf(pair))?.value))
}

function sameKey(patch: YAMLMap, item: unknown, keys: string[]): boolean {
  if (!isMap(item)) return false
  const key = keys.find((each) => pairOf(patch, each) !== undefined)
  if (key === undefined) return false
  const [own, other] = [pairOf(patch, key), pairOf(item, key)]
  return own !== undefined && other !== undefined && sameNode(own.value, other.value)
}

/** The value without the directives inside it; undefined when its own directive deletes it. */
function cleaned(node: Node | null): Node | undefined {
  if (directive(node) === 'delete') return undefined
  if (isMap(node)) {
    node.flow = false
    node.items = node.items.filter((pair) => keyOf(pair) !== '$patch' && directive(pair.value) !== 'delete')
    for (const pair of node.items) pair.value = cleaned(pair.value as Node | null) ?? pair.value
    if (node.items.length === 0) node.flow = true
  } else if (isSeq(node)) {
    node.items = node.items.filter((item) => directive(item) !== 'delete').map((item) => cleaned(item as Node) ?? item)
    node.flow = node.items.length === 0
  }
  return node ?? undefined
}

function schemaAt(schema: unknown, key: string): unknown {
  const inner = unwrap(schema ?? {})
  return inner.entries?.[key] ?? inner.value
}

type MergeRule = 'replace' | string[] | undefined

function mergeRule(schema: unknown): MergeRule {
  return notedAt(schema, 'merge') as MergeRule
}

/** Merges one document of a patch into the document it applies to. */
export function mergeDocument(target: YamlDocument, patch: YamlDocument, schema: unknown): void {
  const copy = detach(patch.contents, patch) as YAMLMap
  if (isMap(target.contents)) mergeMap(target.contents as YAMLMap, copy, schema)
}

/** A patch document as a new document of the configuration. */
export function ownDocument(patch: YamlDocument): YamlDocument {
  patch.contents = (cleaned(detach(patch.contents, patch)) ?? null) as YamlDocument['contents']
  return patch
}
