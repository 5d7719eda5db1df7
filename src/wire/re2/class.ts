/** Sets of code points, as sorted ranges that are not adjacent. */

/** First and last code point of each range. */
export type Ranges = readonly (readonly [first: number, last: number])[]

export const largest = 0x10ffff

/** The ranges sorted, with adjacent ones merged. */
export function normal(ranges: Ranges): Ranges {
  const out: [number, number][] = []
  for (const [first, last] of ranges.toSorted(([a], [b]) => a - b)) {
    const end = out.at(-1)
    if (end && first <= end[1] + 1) end[1] = Math.max(end[1], last)
    else out.push([first, last])
  }
  return out
}

/** The complement. */
export function inverse(ranges: Ranges): Ranges {
  const out: [number, number][] = []
  let next = 0
  for (const [first, last] of ranges) {
    if (first > next) out.push([next, first - 1])
    next = last + 1
  }
  if (next <= largest) out.push([next, largest])
  return out
}

/** Adds the other case of letters. Code points beyond the alphabets with two cases are not folded: the patterns here do not need them. */
export function folded(ranges: Ranges): Ranges {
  const out = [...ranges]
  for (const [first, last] of ranges)
    for (let code = first; code <= Math.min(last, lastCased); code++) for (const other of casesOf(code)) out.push([other, other])
  return normal(out)
}

/** The last code point of the alphabets that have two cases (Latin, Greek, Cyrillic, Armenian). */
const lastCased = 0x587

function casesOf(code: number): number[] {
  const text = String.fromCodePoint(code)
  return [text.toLowerCase(), text.toUpperCase()].filter((other) => other.length === 1).map((other) => other.charCodeAt(0))
}

/** Whether a set contains a code point. */
export function includes(ranges: Ranges, code: number): boolean {
  let low = 0
  let high = ranges.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const range = ranges[middle]
    if (!range || code < range[0]) high = middle - 1
    else if (code > range[1]) low = middle + 1
    else return true
  }
  return false
}

const digit: Ranges = [[0x30, 0x39]]
const upper: Ranges = [[0x41, 0x5a]]
const lower: Ranges = [[0x61, 0x7a]]
const space: Ranges = [
  [0x09, 0x0a],
  [0x0c, 0x0d],
  [0x20, 0x20],
]

const word: Ranges = [...digit, ...upper, [0x5f, 0x5f], ...lower]

/** Classes of one letter after a backslash; the capital letter is the complement. */
export const perlClasses: ReadonlyMap<string, Ranges> = new Map([
  ['d', digit],
  ['D', inverse(digit)],
  ['w', word],
  ['W', inverse(word)],
  ['s', space],
  ['S', inverse(space)],
])

/** Named classes within brackets: `[[:alpha:]]`. */
export const posixClasses: Readonly<Record<string, Ranges>> = {
  alnum: [...digit, ...upper, ...lower],
  alpha: [...upper, ...lower],
  ascii: [[0, 0x7f]],
  blank: [
    [0x09, 0x09],
    [0x20, 0x20],
  ],
  cntrl: [
    [0, 0x1f],
    [0x7f, 0x7f],
  ],
  digit,
  graph: [[0x21, 0x7e]],
  lower,
  print: [[0x20, 0x7e]],
  punct: [
    [0x21, 0x2f],
    [0x3a, 0x40],
    [0x5b, 0x60],
    [0x7b, 0x7e],
  ],
  space: [
    [0x09, 0x0d],
    [0x20, 0x20],
  ],
  upper,
  word,
  xdigit: [...digit, [0x41, 0x46], [0x61, 0x66]],
}
