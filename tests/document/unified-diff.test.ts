import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { unifiedDiff } from '../../src/document/unified-diff.ts'

test('changed, added and removed lines are shown with three lines around them', () => {
  const before = 'a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n'
  const after = 'a\nb\nc\nd\nE\nf\ng\nh\ni\nj\nk\nl\nm\n'
  expect(unifiedDiff('a/x', 'b/x', before, after)).toBe(`\
--- a/x
+++ b/x
@@ -2,7 +2,7 @@
 b
 c
 d
-e
+E
 f
 g
 h
@@ -10,3 +10,4 @@
 j
 k
 l
+m
`)
})

test('a new text is added as a whole, and equal ones have no difference', () => {
  expect(unifiedDiff('/dev/null', 'b/x', '', 'a\nb\n')).toBe('--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n')
  expect(unifiedDiff('a/x', 'b/x', 'a\n', 'a\n')).toBe('')
})

/** Applies a difference as `patch` does; fails where its lines or numbers do not fit. */
function applied(before: string[], diff: string): string[] {
  const result: string[] = []
  let at = 0
  for (const line of diff.split('\n').slice(2, -1)) {
    const range = /^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$/.exec(line)
    if (range) {
      const start = Number(range[1]) - (range[2] === '0' ? 0 : 1)
      result.push(...before.slice(at, start))
      at = start
      expect(result.length).toBe(Number(range[3]) - (range[4] === '0' ? 0 : 1))
      continue
    }
    if (!line.startsWith('+')) expect(before[at++]).toBe(line.slice(1))
    if (!line.startsWith('-')) result.push(line.slice(1))
  }
  return [...result, ...before.slice(at)]
}

test('a difference leads from one text to the other', () => {
  const lines = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 40 })
  const text = (all: string[]) => `${all.join('\n')}\n`
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      fc.pre(text(before) !== text(after))
      expect(applied(before, unifiedDiff('a', 'b', text(before), text(after)))).toEqual(after)
    }),
  )
})
