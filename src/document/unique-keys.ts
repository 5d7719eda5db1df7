/** Finds duplicate keys of YAML maps in linear time: the `yaml` package compares every key with all others of its map. */
import { type Document, isPair, isScalar, type LineCounter, visit } from 'yaml'
import { positionOf } from './stream.ts'

/** Describes the first duplicate key of a map; undefined when there is none. Parse with `uniqueKeys: false`. */
export function duplicateKey(document: Document, lines: LineCounter): string | undefined {
  let found: string | undefined
  visit(document, {
    Map(_, map) {
      const seen = new Set<string>()
      for (const pair of map.items) {
        if (!isPair(pair) || !isScalar(pair.key) || pair.key.value === '<<') continue
        const key = String(pair.key.value)
        if (seen.has(key)) {
          const { line, column } = positionOf(lines, pair.key.range?.[0] ?? 0)
          found = `duplicate key ${JSON.stringify(key.slice(0, 100))} at line ${line}, column ${column}`
          return visit.BREAK
        }
        seen.add(key)
      }
      return undefined
    },
  })
  return found
}
