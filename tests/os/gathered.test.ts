import { expect, test } from 'bun:test'
import { gathered } from '../../src/os/gathered.ts'

test('pieces are gathered until they are large enough, and none is lost', async () => {
  const pieces = ['a', 'bcd', 'efghij', 'k'].map((text) => Buffer.from(text))
  expect((await Array.fromAsync(gathered(pieces, 4))).map(String)).toEqual(['abcd', 'efghij', 'k'])
  expect(await Array.fromAsync(gathered([], 4))).toEqual([])
})
