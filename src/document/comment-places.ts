/**
 * Comments after the last key of a map belong to the collection at their own indentation. The parser handles this when all of
 * them are indented less. Where some are not (a commented-out example, followed by a comment on the next section), this module
 * splits them, so that writing the document again leaves each in its place.
 */
import type { CST } from 'yaml'

interface Item {
  start: CST.SourceToken[]
  key?: CST.Token | null
  sep?: CST.SourceToken[]
  value?: CST.Token
}

interface Collection {
  type: 'block-map' | 'block-seq'
  indent: number
  items: Item[]
}

/** Attaches every comment of a document to the collection at its indentation. */
export function placeComments(token: CST.Token): void {
  if (token.type === 'document' && token.value) lift(token.value)
}

/** The comments that are indented less than this collection and have to move to the enclosing one. */
function lift(token: CST.Token | null | undefined): CST.SourceToken[] {
  if (token?.type !== 'block-map' && token?.type !== 'block-seq') return []
  const collection = token as unknown as Collection
  const { items, indent } = collection
  for (const [index, { value }] of items.entries()) {
    const lifted = lift(value)
    if (lifted.length === 0) continue
    const next = items[index + 1]
    if (next) next.start.unshift(...lifted)
    else items.push({ start: lifted })
  }
  const last = items.at(-1)
  if (!last || last.key || last.sep || last.value) return []
  const first = last.start.findIndex((each) => each.type === 'comment' && each.indent < indent)
  if (first < 0 || last.start.some((each) => !['comment', 'newline', 'space'].includes(each.type))) return []
  let from = first
  while (last.start[from - 1]?.type === 'space') from--
  const lifted = last.start.splice(from)
  if (last.start.length === 0) items.pop()
  return lifted
}
