/** The known names that a mistyped one most likely meant: at most a third of its letters differ. */
export function nearest(name: string, known: Iterable<string>, most = 3): string[] {
  const limit = Math.max(1, Math.floor(name.length / 3))
  return [...new Set(known)]
    .map((candidate) => ({ candidate, distance: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter((one) => one.distance <= limit)
    .toSorted((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, most)
    .map(({ candidate }) => candidate)
}

/** How many letters have to be changed, added, dropped or swapped with their neighbour. */
function distance(a: string, b: string): number {
  let [before, row]: number[][] = [[], Array.from({ length: b.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let cost = Math.min((row?.[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row?.[j - 1] ?? 0) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, (before?.[j - 2] ?? 0) + 1)
      next.push(cost)
    }
    ;[before, row] = [row ?? [], next]
  }
  return row?.at(-1) ?? 0
}
