/**
 * Parsers of what comes from outside, fed with what they know, changed at random: they answer, or refuse in their own words.
 * The same inputs every time; `bun tests/fuzz/guided.ts` looks for others.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { mutated, numbers } from './mutate.ts'
import { feed, targets } from './targets.ts'

describe.each(Object.entries(targets))('%s', (_, target) => {
  test('are read when they are well', async () => {
    for (const seed of target.seeds) await feed(target, seed)
  })

  test('made of known ones are read or refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const pick = numbers(seed)
        for (let times = 0; times < 10; times++) await feed(target, mutated(target.seeds, pick))
      }),
      { numRuns: 60, seed: 1 },
    )
  })

  test('of any bytes are read or refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (input) => {
        await feed(target, input)
      }),
      { numRuns: 300, seed: 1 },
    )
  })
})

test('a fault is none of the answers', async () => {
  const broken = { seeds: [], answers: ['RpcError'], run: () => void (undefined as unknown as string).length }
  expect(feed(broken, Buffer.alloc(0))).rejects.toThrow(TypeError)
})
