import { expect, test } from 'bun:test'
import { median } from '../../bench/median.ts'
import { MissingError, present } from '../../rootfs/build/present.ts'
import { contentSize, Tree, TreeError } from '../../src/programs/factory/root/tree.ts'

test('what has to be there is returned, and its absence has a name', () => {
  expect(present(0, 'zero')).toBe(0)
  expect(present('', 'text')).toBe('')
  for (const absent of [undefined, null]) expect(() => present(absent, 'the loader')).toThrow(new MissingError('the loader is missing'))
})

test('a further name of a file has no content of its own', () => {
  const tree = new Tree()
  tree.text('base', '/etc/one', 'four')
  tree.add({ path: '/etc/two', type: 'file', mode: 0o644, linkTo: '/etc/one', part: 'base' })
  const [one, two] = ['/etc/one', '/etc/two'].map((path) => present(tree.get(path), path))
  expect(one && contentSize(one)).toBe(4)
  expect(() => two && contentSize(two)).toThrow(new TreeError('path "/etc/two" of base has no content of its own'))
})

test('a median is of something', () => {
  expect(median([9, 1, 5])).toBe(5)
  expect(median([4, 1, 3, 2])).toBe(3)
  expect(() => median([])).toThrow(RangeError)
})
