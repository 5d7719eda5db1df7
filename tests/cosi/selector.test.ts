import { expect, test } from 'bun:test'
import { type LabelTerm, matches } from '../../src/cosi/selector.ts'

/** label value (undefined: absent), operator, values, whether it holds, whether the inverted term holds. */
const cases: [string | undefined, LabelTerm['op'], string[], boolean, boolean][] = [
  ['x', 'exists', [], true, false],
  ['', 'exists', [], true, false],
  [undefined, 'exists', [], false, true],
  ['x', 'equal', ['x'], true, false],
  ['x', 'equal', ['y'], false, true],
  ['x', 'equal', [], false, true],
  [undefined, 'equal', ['x'], false, true],
  ['x', 'in', ['y', 'x'], true, false],
  ['x', 'in', ['y'], false, true],
  [undefined, 'in', ['x'], false, true],
  ['a', 'lt', ['b'], true, false],
  ['b', 'lt', ['b'], false, true],
  ['b', 'lte', ['b'], true, false],
  ['c', 'lte', ['b'], false, true],
  [undefined, 'lt', ['b'], false, false],
  ['9', 'lt', ['10'], false, true],
  ['9', 'lt-numeric', ['10'], true, false],
  ['10', 'lt-numeric', ['10'], false, true],
  ['10', 'lte-numeric', ['10'], true, false],
  ['-5', 'lt-numeric', ['0'], true, false],
  ['900Mi', 'lt-numeric', ['1GiB'], true, false],
  ['2k', 'lte-numeric', ['2000'], true, false],
  ['4 GiB', 'lt-numeric', ['4G'], false, true],
  ['10kg', 'lt-numeric', ['12000'], true, false],
  ['10 x', 'lt-numeric', ['12000'], false, false],
  ['many', 'lt-numeric', ['10'], false, false],
  ['1', 'lt-numeric', ['few'], false, false],
  ['1.5', 'lt-numeric', ['2'], false, false],
  [undefined, 'lt-numeric', ['10'], false, false],
]

for (const [value, op, values, plain, inverted] of cases)
  test(`${value === undefined ? 'no label' : JSON.stringify(value)} ${op} ${values.join(' or ')}: ${plain}, inverted ${inverted}`, () => {
    const labels = value === undefined ? {} : { key: value }
    expect(matches({ labels } as never, [{ key: 'key', op, values }])).toBe(plain)
    expect(matches({ labels } as never, [{ key: 'key', op, values, invert: true }])).toBe(inverted)
  })

test('all terms of a selector must match', () => {
  const labels = { a: '1', b: '2' }
  expect(matches({ labels } as never, [])).toBe(true)
  expect(
    matches({ labels } as never, [
      { key: 'a', op: 'exists' },
      { key: 'b', op: 'equal', values: ['2'] },
    ]),
  ).toBe(true)
  expect(
    matches({ labels } as never, [
      { key: 'a', op: 'exists' },
      { key: 'b', op: 'equal', values: ['3'] },
    ]),
  ).toBe(false)
})
