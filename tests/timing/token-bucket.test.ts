import { expect, test } from 'bun:test'
import { TokenBucket } from '../../src/timing/token-bucket.ts'

const takes = (bucket: TokenBucket, now: number, most = 100) => {
  let count = 0
  while (count < most && bucket.take(now)) count++
  return count
}

test('a bucket gives its burst at once, then tokens at its rate', () => {
  const bucket = new TokenBucket({ rate: 10, burst: 5 }, 0)
  expect(takes(bucket, 0)).toBe(5)
  expect(takes(bucket, 99)).toBe(0)
  expect(takes(bucket, 300)).toBe(3)
})

test('a bucket keeps no more than its burst, however long it is not used', () => {
  const bucket = new TokenBucket({ rate: 10, burst: 5 }, 0)
  expect(takes(bucket, 3_600_000)).toBe(5)
})

test('a refused token costs nothing', () => {
  const bucket = new TokenBucket({ rate: 1, burst: 1 }, 0)
  expect(bucket.take(0)).toBe(true)
  for (const now of [250, 500, 750]) expect(bucket.take(now)).toBe(false)
  expect(bucket.take(1000)).toBe(true)
})

test('a debt is refilled before there is a token again', () => {
  const bucket = new TokenBucket({ rate: 10, burst: 5 }, 0)
  expect(bucket.spend(15, 0)).toBe(-10)
  expect(bucket.tokens(1000)).toBe(0)
  expect(bucket.take(1000)).toBe(false)
  expect(bucket.take(1100)).toBe(true)
})

test('a bucket is full before its first use and after it was refilled', () => {
  const bucket = new TokenBucket({ rate: 10, burst: 5 }, 0)
  expect(bucket.full(0)).toBe(true)
  bucket.take(0)
  expect(bucket.full(99)).toBe(false)
  expect(bucket.full(100)).toBe(true)
})
