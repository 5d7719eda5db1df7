/** Small operations on YAML nodes, shared by both kinds of patches. */
import { type Document, isAlias, isMap, isPair, isScalar, isSeq, type Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml'
import { hasAliases, resolveAlias } from '../anchors.ts'
import { ConfigError } from '../config-error.ts'
import { nodeBudget } from '../decode.ts'
import { plainText, plainValue } from '../scalar.ts'
import type { YamlDocument } from '../stream.ts'

/** A deep copy without aliases, anchors and needless quotes, for insertion into another document. */
export function detach(node: Node | null | undefined, document: Document, budget = { nodes: 0 }): Node {
  if (++budget.nodes > nodeBudget) throw new ConfigError([{ message: `too many values: aliases may expand to ${nodeBudget} at most` }])
  if (isAlias(node)) {
    const target = resolveAlias(node, document)
    if (!target) throw new ConfigError([{ message: `alias "*${node.source}" has no anchor before it, or contains itself` }])
    return detach(target, document, budget)
  }
  let copy: Node
  if (isMap(node)) {
    const map = new YAMLMap()
    map.flow = node.flow === true
    for (const pair of node.items)
      map.items.push(new Pair(detach(pair.key as Node, document, budget), detach(pair.value as Node, document, budget)))
    copy = map
  } else if (isSeq(node)) {
    const list = new YAMLSeq()
    list.flow = node.flow === true
    for (const item of node.items) list.items.push(detach(item as Node, document, budget))
    copy = list
  } else copy = copyScalar(node as Scalar | null | undefined)
  if (node?.comment) copy.comment = node.comment
  if (node?.commentBefore) copy.commentBefore = node.commentBefore
  if (node?.spaceBefore) copy.spaceBefore = true
  return copy
}

function copyScalar(node: Scalar | null | undefined): Scalar {
  const value = node?.value ?? ''
  const copy = new Scalar(value)
  const quoted = node?.type === 'QUOTE_DOUBLE' || node?.type === 'QUOTE_SINGLE'
  copy.type = quoted && typeof value === 'string' && plainText(value) ? 'PLAIN' : (node?.type ?? 'PLAIN')
  return copy
}

/** The key of a pair as a string. */
export const keyOf = (pair: { key: unknown }): string => (isScalar(pair.key) ? String(pair.key.value) : '')

/** The pair of a map under a key. */
export const pairOf = (map: YAMLMap, key: string): Pair | undefined => map.items.find((pair) => keyOf(pair) === key)

/** The string of the scalar under a key, if there is one. */
export function textOf(map: YAMLMap, key: string): string | undefined {
  const value = pairOf(map, key)?.value
  return isScalar(value) && value.value !== null ? String(value.value) : undefined
}

/** Whether a node is absent or an unquoted null. */
export const isEmpty = (node: unknown): boolean =>
  node === null ||
  node === undefined ||
  (isScalar(node) && (node.type === 'PLAIN' || node.type === undefined) && plainValue(String(node.value ?? '')) === null)

/** Whether both nodes are equal; order counts in lists but not in maps, and comments are ignored. */
export const sameNode = (a: unknown, b: unknown): boolean => canonical(a) === canonical(b)

function canonical(node: unknown): string {
  if (isMap(node)) {
    const entries = node.items.map((pair) => `${JSON.stringify(keyOf(pair))}:${canonical(pair.value)}`)
    return `{${entries.sort().join(',')}}`
  }
  if (isSeq(node)) return `[${node.items.map(canonical).join(',')}]`
  if (isPair(node)) return canonical(node.value)
  if (!isScalar(node)) return 'null'
  const value = node.type === 'PLAIN' ? plainValue(String(node.value ?? '')) : node.value
  return JSON.stringify(value)
}

/** Replaces a document's aliases by copies, so that a change in one place stays there. */
export function openAliases(document: YamlDocument): void {
  if (hasAliases(document as Document)) document.contents = detach(document.contents, document as Document) as YamlDocument['contents']
}
