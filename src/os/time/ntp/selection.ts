/**
 * Selection and clustering (RFC 5905 section 11.2): each server claims that the true time lies within its distance of its
 * offset. Servers whose intervals intersect where most do are accepted, the others are falsetickers; then the accepted ones
 * that scatter the most are left out.
 */

/** The claim of one server. Seconds. */
export interface Candidate {
  readonly server: string
  readonly offset: number
  /** The largest error of the offset. */
  readonly distance: number
  readonly jitter: number
  readonly leap: number
}

/** The combined result of the accepted servers. */
export interface Consensus {
  readonly offset: number
  readonly jitter: number
  /** The largest error of the offset. */
  readonly distance: number
  readonly leap: number
  readonly believed: readonly string[]
  readonly disbelieved: readonly string[]
}

/** At this number of servers none is left out for scatter. */
const fewest = 3

/** What most agree upon; undefined when no majority does. */
export function consensus(candidates: readonly Candidate[]): Consensus | undefined {
  const range = intersection(candidates)
  if (!range) return undefined
  const truthful = candidates.filter(({ offset, distance }) => offset + distance >= range.low && offset - distance <= range.high)
  const survivors = closest(truthful)
  const [first] = survivors
  if (!first) return undefined
  const weights = survivors.map(({ distance }) => 1 / Math.max(distance, 1e-9))
  const whole = weights.reduce((sum, weight) => sum + weight, 0)
  const mean = (value: (one: Candidate) => number) =>
    survivors.reduce((sum, one, index) => sum + value(one) * (weights[index] ?? 0), 0) / whole
  const offset = mean((one) => one.offset)
  const spread = Math.sqrt(mean((one) => (one.offset - offset) ** 2))
  return {
    offset,
    jitter: Math.hypot(spread, first.jitter),
    distance: Math.min(...survivors.map(({ distance }) => distance)),
    leap: [1, 2].find((leap) => survivors.filter((one) => one.leap === leap).length * 2 > survivors.length) ?? 0,
    believed: survivors.map(({ server }) => server),
    disbelieved: candidates.filter((one) => !truthful.includes(one)).map(({ server }) => server),
  }
}

/** The interval in which more than half of the claims intersect, with the offsets of all accepted servers inside. */
function intersection(candidates: readonly Candidate[]): { low: number; high: number } | undefined {
  const edges = candidates
    .flatMap(({ offset, distance }) => [
      { at: offset - distance, kind: -1 },
      { at: offset, kind: 0 },
      { at: offset + distance, kind: 1 },
    ])
    .sort((a, b) => a.at - b.at || a.kind - b.kind)
  for (let liars = 0; liars * 2 < candidates.length; liars++) {
    const enough = candidates.length - liars
    const sweep = (ordered: typeof edges, opens: number) => {
      let open = 0
      let middles = 0
      for (const { at, kind } of ordered) {
        if (kind === opens) open++
        else if (kind === 0) middles++
        else open--
        if (open >= enough) return { at, middles }
      }
      return undefined
    }
    const low = sweep(edges, -1)
    const high = sweep(edges.toReversed(), 1)
    if (low && high && low.at <= high.at && low.middles <= liars && high.middles <= liars) return { low: low.at, high: high.at }
  }
  return undefined
}

/** The servers that are left after removing the farthest ones for as long as that makes the rest agree better. */
function closest(truthful: readonly Candidate[]): Candidate[] {
  let left = truthful.toSorted((a, b) => a.distance - b.distance)
  while (left.length > fewest) {
    const scatter = left.map(({ offset }) =>
      Math.sqrt(left.reduce((sum, other) => sum + (other.offset - offset) ** 2, 0) / (left.length - 1)),
    )
    const most = Math.max(...scatter)
    const worst = scatter.indexOf(most)
    if (most <= Math.min(...left.map(({ jitter }) => jitter))) break
    left = left.filter((_, index) => index !== worst)
  }
  return left
}
