/** Resolves aliases with an index that is built once per document instead of a search per alias. */
import { type Alias, type Document, isNode, type Node, visit } from 'yaml'

interface Anchored {
  offset: number
  node: Node
}

const indexes = new WeakMap<Document, Map<string, Anchored[]>>()

/** The last node before the alias that has its anchor; undefined when there is none, or when it contains the alias. */
export function resolveAlias(alias: Alias, document: Document): Node | undefined {
  const offset = alias.range?.[0] ?? Number.POSITIVE_INFINITY
  const node = lastBefore(indexOf(document).get(alias.source) ?? [], offset)?.node
  const end = node?.range?.[1] ?? 0
  return node && offset >= end ? node : undefined
}

/** The last node that starts before an offset; nodes are sorted by offset. */
function lastBefore(anchored: readonly Anchored[], offset: number): Anchored | undefined {
  let [low, high] = [0, anchored.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const node = anchored[middle]
    if (node && node.offset < offset) low = middle + 1
    else high = middle
  }
  return anchored[low - 1]
}

/** Whether a document uses aliases. */
export function hasAliases(document: Document): boolean {
  let found = false
  visit(document, {
    Alias() {
      found = true
      return visit.BREAK
    },
  })
  return found
}

function indexOf(document: Document): Map<string, Anchored[]> {
  let index = indexes.get(document)
  if (!index) {
    index = new Map()
    const names = index
    visit(document, (_, node) => {
      if (!isNode(node) || !('anchor' in node) || !node.anchor) return
      const anchored = names.get(node.anchor)
      const entry = { offset: node.range?.[0] ?? 0, node }
      if (anchored) anchored.push(entry)
      else names.set(node.anchor, [entry])
    })
    indexes.set(document, index)
  }
  return index
}
