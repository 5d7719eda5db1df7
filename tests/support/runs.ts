/**
 * How often a property is tried. Each names its full number of runs, of which FUZZ_RUNS percent are tried: 10 by default,
 * which finds a gross fault; 100 in the test command; more to search for longer.
 */
const usual = 10
/** Fewer runs find too little. */
const least = 5

const percent = percentOf(process.env.FUZZ_RUNS)

/** The number of runs of a property that is tried `full` times at full strength. */
export function runs(full: number, wanted = percent): number {
  return Math.max(Math.min(full, least), Math.ceil((full * wanted) / 100))
}

/** As many of all cases as are wanted, but no fewer than `fewest`, spread over them evenly. */
export function sample<T>(all: readonly T[], { fewest = least, wanted = percent } = {}): T[] {
  const count = Math.min(all.length, Math.max(fewest, Math.ceil((all.length * wanted) / 100)))
  return Array.from({ length: count }, (_, index) => all[Math.floor((index * all.length) / count)]!)
}

export function percentOf(text: string | undefined): number {
  if (text === undefined || text === '') return usual
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new Error(`FUZZ_RUNS is "${text}": it takes a whole number of percent, 100 for the full strength`)
  return Number(text)
}
