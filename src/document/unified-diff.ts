/** The unified format of differences between texts, as `diff -u` prints it. */

/** Unchanged lines around a change. */
const context = 3

/** Cells of the table of common lines; larger differences are shown as one replacement. */
const largest = 4_000_000

interface Line {
  readonly sign: ' ' | '-' | '+'
  readonly text: string
}

/** The difference with its two header lines; empty for equal texts. */
export function unifiedDiff(from: string, to: string, before: string, after: string): string {
  if (before === after) return ''
  const lines = compare(linesOf(before), linesOf(after))
  return `--- ${from}\n+++ ${to}\n${hunks(lines).join('')}`
}

function linesOf(text: string): string[] {
  if (text === '') return []
  return text.replace(/\n$/, '').split('\n')
}

function compare(before: readonly string[], after: readonly string[]): Line[] {
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) start++
  let end = 0
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end++
  const same = (lines: readonly string[]) => lines.map((text): Line => ({ sign: ' ', text }))
  return [
    ...same(before.slice(0, start)),
    ...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...same(before.slice(before.length - end)),
  ]
}

/** The lines of both, by the longest common subsequence. */
function middle(before: readonly string[], after: readonly string[]): Line[] {
  const width = after.length + 1
  const removed = before.map((text): Line => ({ sign: '-', text }))
  const added = after.map((text): Line => ({ sign: '+', text }))
  if ((before.length + 1) * width > largest) return [...removed, ...added]
  const common = new Uint32Array((before.length + 1) * width)
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--) {
      const at = i * width + j
      common[at] = before[i] === after[j] ? (common[at + width + 1] ?? 0) + 1 : Math.max(common[at + width] ?? 0, common[at + 1] ?? 0)
    }
  const lines: Line[] = []
  let [i, j] = [0, 0]
  while (i < before.length && j < after.length) {
    const at = i * width + j
    if (before[i] === after[j]) {
      lines.push({ sign: ' ', text: before[i++] ?? '' })
      j++
    } else if ((common[at + width] ?? 0) >= (common[at + 1] ?? 0)) lines.push({ sign: '-', text: before[i++] ?? '' })
    else lines.push({ sign: '+', text: after[j++] ?? '' })
  }
  return [...lines, ...removed.slice(i), ...added.slice(j)]
}

/** Changes with their context, joined where it overlaps. */
function hunks(lines: readonly Line[]): string[] {
  const result: string[] = []
  let [oldLine, newLine] = [1, 1]
  let at = 0
  const skip = (to: number) => {
    for (; at < to; at++) {
      if (lines[at]?.sign !== '+') oldLine++
      if (lines[at]?.sign !== '-') newLine++
    }
  }
  while (true) {
    const first = lines.findIndex(({ sign }, index) => index >= at && sign !== ' ')
    if (first < 0) return result
    skip(Math.max(at, first - context))
    let end = first
    for (let next = first; next < lines.length && next <= end + 2 * context + 1; next++) if (lines[next]?.sign !== ' ') end = next
    const part = lines.slice(at, Math.min(lines.length, end + 1 + context))
    const range = (start: number, other: '-' | '+') => {
      const count = part.filter(({ sign }) => sign !== other).length
      return `${count === 0 ? start - 1 : start},${count}`
    }
    const header = `@@ -${range(oldLine, '+')} +${range(newLine, '-')} @@\n`
    result.push(header + part.map(({ sign, text }) => `${sign}${text}\n`).join(''))
    skip(at + part.length)
  }
}
