/** Computes the strategic merge patch between two configurations. */
import { isMap, isSeq, type Node, Pair, Scalar, YAMLMap } from 'yaml'
import type { YamlDocument } from '../stream.ts'
import { detach, isEmpty, keyOf, pairOf, sameNode } from './node.ts'

const word = (text: string): Scalar => {
  const scalar = new Scalar(text)
  scalar.type = 'PLAIN'
  return scalar
}

const directiveMap = (directive: 'delete' | 'replace'): YAMLMap => {
  const map = new YAMLMap()
  map.items.push(new Pair(word('$patch'), word(directive)))
  return map
}

/** The patch from one map to another; undefined when they are equal. Both must be free of aliases: see `openAliases`. */
export function difference(from: YAMLMap, to: YAMLMap, document: YamlDocument): YAMLMap | undefined {
  const patch = new YAMLMap()
  const copy = (node: unknown) => detach(node as Node, document)
  for (const pair of from.items) {
    if (!pairOf(to, keyOf(pair))) patch.items.push(new Pair(copy(pair.key), directiveMap('delete')))
  }
  for (const pair of to.items) {
    const before = pairOf(from, keyOf(pair))?.value
    const after = pair.value
    if (before !== undefined && sameNode(before, after)) continue
    if (isMap(before) && isMap(after)) {
      const inner = unsayable(after) ? replacement(after, document) : difference(before, after, document)
      if (inner) patch.items.push(new Pair(copy(pair.key), inner))
    } else if (isSeq(before) && isSeq(after)) {
      const list = copy(after) as typeof after
      list.items.unshift(directiveMap('replace'))
      list.flow = false
      patch.items.push(new Pair(copy(pair.key), list))
    } else patch.items.push(new Pair(copy(pair.key), copy(after)))
  }
  return patch.items.length ? patch : undefined
}

/** A merge keeps keys that a patch does not contain, so an empty value can only be set together with its whole parent. */
const unsayable = (map: YAMLMap): boolean => map.items.some(({ value }) => isEmpty(value))

function replacement(map: YAMLMap, document: YamlDocument): YAMLMap {
  const copy = detach(map, document) as YAMLMap
  copy.items.unshift(new Pair(word('$patch'), word('replace')))
  copy.flow = false
  return copy
}
