/**
 * Comments after the last key of a map belong to what stands at their own indentation. The parser sees to it when all of
 * them are further left; where some are not (an example that is commented out, then words on the next section), this
 * splits them, so that writing the text again leaves each where it was.
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

/** Puts every comment of a document where its indentation says. */
export function placeComments(token: CST.Token): void {
  if (token.type === 'document' && token.value) lift(token.value)
}

/** What stands further left than this collection and has to go to the one around it. */
function lift(token: CST.Token | null | undefined): CST.SourceToken[] {
  if (token?.type !== 'block-map' && token?.type !== 'block-seq') return []
  const collection = token as unknown as Collection
  const { items, indent } = collection
  for (let index = 0; index < items.length; index++) {
    const lifted = lift(items[index]!.value)
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
  while (from > 0 && last.start[from - 1]!.type === 'space') from--
  const lifted = last.start.splice(from)
  if (last.start.length === 0) items.pop()
  return lifted
}
