/** The lines that tell two texts apart, with a few around them: `-` goes, `+` comes, `@@` says where. */

const context = 3
/** Beyond so many cells of the table, the middle is shown as replaced whole. */
const limit = 4_000_000

interface Step {
  readonly sign: ' ' | '-' | '+'
  readonly line: string
}

/** The difference of two texts in the unified format; empty when they are the same. */
export function lineDiff(before: string, after: string, names: { before?: string; after?: string } = {}): string {
  if (before === after) return ''
  const steps = stepsOf(before.split('\n'), after.split('\n'))
  const shown = steps.map((_, at) => steps.slice(Math.max(0, at - context), at + context + 1).some(({ sign }) => sign !== ' '))
  const out = [`--- ${names.before ?? 'before'}`, `+++ ${names.after ?? 'after'}`]
  let [old, now] = [1, 1]
  for (let at = 0; at < steps.length; ) {
    if (!shown[at]) {
      old++
      now++
      at++
      continue
    }
    let end = at
    while (end < steps.length && shown[end]) end++
    const hunk = steps.slice(at, end)
    const gone = hunk.filter(({ sign }) => sign !== '+').length
    const come = hunk.filter(({ sign }) => sign !== '-').length
    out.push(`@@ -${old},${gone} +${now},${come} @@`, ...hunk.map(({ sign, line }) => `${sign}${line}`))
    old += gone
    now += come
    at = end
  }
  return `${out.join('\n')}\n`
}

function stepsOf(a: readonly string[], b: readonly string[]): Step[] {
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const same = (line: string): Step => ({ sign: ' ', line })
  return [
    ...a.slice(0, head).map(same),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map(same),
  ]
}

/** The longest common subsequence by the usual table: configurations are some hundred lines, and what differs is less. */
function middle(a: readonly string[], b: readonly string[]): Step[] {
  if (a.length * b.length > limit) return [...a.map((line): Step => ({ sign: '-', line })), ...b.map((line): Step => ({ sign: '+', line }))]
  const width = b.length + 1
  const best = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      best[i * width + j] =
        a[i] === b[j] ? best[(i + 1) * width + j + 1]! + 1 : Math.max(best[(i + 1) * width + j]!, best[i * width + j + 1]!)
  const steps: Step[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      steps.push({ sign: ' ', line: a[i]! })
      i++
      j++
    } else if (j >= b.length || (i < a.length && best[(i + 1) * width + j]! >= best[i * width + j + 1]!))
      steps.push({ sign: '-', line: a[i++]! })
    else steps.push({ sign: '+', line: b[j++]! })
  }
  return steps
}
