import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type LogQuery, LogRing } from '../../src/supervise/log-ring.ts'

async function text(ring: LogRing, query?: LogQuery): Promise<string> {
  const chunks = await Array.fromAsync(ring.read(query))
  return Buffer.concat(chunks).toString()
}

test('returns what was written, the most recent part beyond the capacity', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ maxLength: 40, unit: 'grapheme-ascii' }), { maxLength: 60 }), async (lines) => {
      const ring = new LogRing(100)
      for (const line of lines) ring.write(line)
      expect(await text(ring)).toBe(lines.join('').slice(-100))
    }),
  )
})

test('the last lines', async () => {
  const ring = new LogRing()
  for (const word of ['one', 'two', 'three']) ring.line(word)
  expect(await text(ring, { from: ring.end - 6 })).toBe('three\n')
  expect(await text(ring, { from: ring.end })).toBe('')
  expect(await text(ring, { tailLines: 2 })).toBe('two\nthree\n')
  expect(await text(ring, { tailLines: 9 })).toBe('one\ntwo\nthree\n')
  expect(await text(ring, { tailLines: 0 })).toBe('')
  expect(await text(ring, { tailLines: -1 })).toBe('one\ntwo\nthree\n')
})

test('a follower gets what comes, and loses only what was overwritten before it looked', async () => {
  const ring = new LogRing(8)
  const stop = new AbortController()
  const reader = ring.read({ follow: true, signal: stop.signal })
  const first = reader.next()
  ring.write('ab')
  expect(Buffer.from((await first).value!).toString()).toBe('ab')
  ring.write('cdefgh')
  ring.write('ijkl')
  expect(Buffer.from((await reader.next()).value!).toString()).toBe('efghijkl')
  const last = reader.next()
  stop.abort()
  expect((await last).done).toBe(true)
})
