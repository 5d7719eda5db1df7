/** The median of numbers in any order; of an even count the higher of the middle two. */
export function median(numbers: readonly number[]): number {
  const middle = numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
  if (middle === undefined) throw new RangeError('median: nothing was measured')
  return middle
}
