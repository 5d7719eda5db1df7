import { expect, test } from 'bun:test'
import { KernelFeed } from '../../../../src/os/telemetry/shipping/kernel-feed.ts'
import type { KernelRecord } from '../../../../src/wire/proc/kmsg.ts'

/** A kernel that has these records now. */
function kernel() {
  const records: KernelRecord[] = []
  const lost: number[] = []
  const feed = new KernelFeed({
    kernel: {
      kmsg: {
        async *readKernelLog() {
          yield* records
        },
      } as never,
      time: { clock: () => 10_000_000_000n } as never,
    },
    now: () => new Date('2026-11-24T10:00:10Z'),
    dropped: (_, count) => lost.push(count),
  })
  const has = (...sequences: number[]) => {
    records.splice(0)
    for (const sequence of sequences)
      records.push({ facility: 0, severity: 6, sequence, timestamp: sequence * 1_000_000, message: `m${sequence}`, tags: {} })
  }
  return { feed, has, lost }
}

const never = new AbortController().signal
const texts = async (feed: KernelFeed, deliver: boolean) => {
  const seen: { msg: string; 'talos-time': string }[] = []
  for await (const { texts: some, delivered } of feed.batches(never)) {
    seen.push(...some.map((text) => JSON.parse(text)))
    if (deliver) delivered()
  }
  return seen
}

test('records are sent from the oldest on, and those that were not delivered again', async () => {
  const { feed, has, lost } = kernel()
  has(5, 6)
  expect((await texts(feed, false)).map(({ msg }) => msg)).toEqual(['m5', 'm6'])
  expect(feed.behind).toBe(2)
  const [first] = await texts(feed, true)
  expect(first?.['talos-time']).toBe('2026-11-24T10:00:05.000Z')
  expect(feed.positions).toEqual({ kernel: 6 })
  has(5, 6, 7)
  expect((await texts(feed, true)).map(({ msg }) => msg)).toEqual(['m7'])
  expect(lost).toEqual([])
})

test('records that were overwritten are counted once', async () => {
  const { feed, has, lost } = kernel()
  has(1, 2)
  await texts(feed, true)
  has(6, 7)
  expect((await texts(feed, false)).map(({ msg }) => msg)).toEqual(['m6', 'm7'])
  await texts(feed, true)
  expect(lost).toEqual([3])
  has(7, 8)
  await texts(feed, true)
  expect(lost).toEqual([3])
})
