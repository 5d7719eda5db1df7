/** The known word closest to what was written, if it is close enough. */
export const nearest = (written: string, known: Iterable<string>): string | undefined => nearestOf(written, known, 1)[0]

/** The closest known words, the closest first; at most a third of the characters differ. */
export function nearestOf(written: string, known: Iterable<string>, most = 3): string[] {
  if (written.length > 100) return []
  const close: { word: string; distance: number }[] = []
  for (const word of new Set(known)) {
    const distance = editDistance(written.toLowerCase(), word.toLowerCase())
    if (distance <= Math.max(1, Math.floor(Math.max(word.length, written.length) / 3))) close.push({ word, distance })
  }
  const sorted = close.toSorted((a, b) => a.distance - b.distance)
  return sorted.slice(0, most).map(({ word }) => word)
}

/** Damerau-Levenshtein distance: a transposition of adjacent characters counts as one edit. */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  /** The distance of the first `i` characters of one word from the first `j` of the other; nothing is reached from beyond the table. */
  const distance = (i: number, j: number) => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= b.length; j++) {
      const replaced = distance(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const transposed = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? distance(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY
      row.push(Math.min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, replaced, transposed))
    }
  }
  return distance(a.length, b.length)
}
