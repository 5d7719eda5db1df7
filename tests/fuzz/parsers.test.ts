/**
 * Parsers of what comes from outside, fed with what they know, changed at random: they answer, or refuse in their own words.
 * The same inputs every time; `bun tests/fuzz/guided.ts` looks for others.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { runs, sample } from '../support/runs.ts'
import { mutated, numbers } from './mutate.ts'
import { feed } from './target.ts'
import { targets } from './targets.ts'

describe.each(Object.entries(targets))('%s', (_, target) => {
  test('are read when they are valid', async () => {
    expect(target.seeds).not.toEqual([])
    for (const seed of target.seeds) await target.run(seed)
  })

  test('made of known ones are read or refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const pick = numbers(seed)
        for (let times = 0; times < 10; times++) await feed(target, mutated(target.seeds, pick))
      }),
      { numRuns: runs(60), seed: 1 },
    )
  })

  test('of any bytes are read or refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (input) => {
        await feed(target, input)
      }),
      { numRuns: runs(300), seed: 1 },
    )
  })
})

/** Milliseconds of the processor for one input. */
const bound = 50

test('every parser answers 1,500 bytes of one kind within 50 ms of processor time', async () => {
  const slow: string[] = []
  for (const [name, target] of Object.entries(targets)) {
    const [first = Buffer.alloc(0)] = target.seeds
    const every = sample(Array.from({ length: 256 }, (_, byte) => ({ start: Buffer.alloc(0), byte })))
    // Half of a seed leads further into the parser than its first byte.
    const own = sample([...new Set([0, 255, ...first])].slice(0, 24)).map((byte) => ({ start: first.subarray(0, first.length >> 1), byte }))
    for (const { start, byte } of [...every, ...own]) {
      const input = Buffer.concat([start, Buffer.alloc(1500, byte)])
      const before = process.threadCpuUsage()
      await feed(target, input)
      const { user, system } = process.threadCpuUsage(before)
      const spent = (user + system) / 1000
      if (spent > bound) slow.push(`${name}: ${Math.round(spent)} ms for byte ${byte} after ${start.length} others`)
    }
  }
  expect(slow).toEqual([])
}, 30_000)

test('a fault is none of the answers', async () => {
  const broken = { seeds: [], answers: ['RpcError'], run: () => void (undefined as unknown as string).length }
  await expect(feed(broken, Buffer.alloc(0))).rejects.toThrow(TypeError)
})
