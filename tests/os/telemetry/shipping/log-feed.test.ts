/** The lines of logs for one destination, from memory and from a real disk. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../../src/cosi/log.ts'
import * as files from '../../../../src/linux/fs/files.ts'
import { LogFiles } from '../../../../src/os/runtime/log-files.ts'
import type { Batch } from '../../../../src/os/telemetry/shipping/feed.ts'
import { LogFeed, longestLine } from '../../../../src/os/telemetry/shipping/log-feed.ts'
import { Logs } from '../../../../src/supervise/logs.ts'

let folder = ''
let open = new AbortController()
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ichor-feed-'))
  open = new AbortController()
})
afterEach(() => {
  open.abort()
  rmSync(folder, { recursive: true })
})

function scene({ longestMessage }: { longestMessage?: number } = {}) {
  const logs = new Logs()
  const onDisk = new LogFiles({ files, log: silent, logs: () => logs.entries() }, folder)
  const lost: [string, number, string][] = []
  const feed = new LogFeed({
    logs: () => [...logs.entries()],
    subscribe: (listener) => logs.subscribe(listener),
    files: onDisk,
    tags: () => ({}),
    now: () => new Date(0),
    dropped: (...drop) => lost.push(drop),
    ...(longestMessage !== undefined && { longestMessage }),
  })
  return { logs, onDisk, lost, feed }
}

/** The next batch of a connection. */
async function next(batches: AsyncGenerator<Batch, void>): Promise<{ lines: string[]; batch: Batch }> {
  const { value } = await batches.next()
  if (!value) throw new Error('the feed has ended')
  return { batch: value, lines: value.texts.map((text) => JSON.parse(text).msg) }
}

/** All lines that are there, of a connection that delivers them. */
async function drain(feed: LogFeed): Promise<string[]> {
  const lines: string[] = []
  const batches = feed.batches(open.signal)
  while (feed.behind > 0) {
    const { batch, lines: some } = await next(batches)
    lines.push(...some)
    batch.delivered()
  }
  return lines
}

test('lines are sent from the oldest in memory on, then as they come', async () => {
  const { logs, feed } = scene()
  logs.open('a').write('one\ntwo\nthr')
  const batches = feed.batches(open.signal)
  expect((await next(batches)).lines).toEqual(['one', 'two'])
  const coming = next(batches)
  logs.open('a').write('ee\n')
  expect((await coming).lines).toEqual(['three'])
  const other = next(batches)
  logs.open('b').line('of a log that is new')
  expect((await other).lines).toEqual(['of a log that is new'])
})

test('what was not delivered is sent again on the next connection, and what was is not', async () => {
  const { logs, feed } = scene()
  logs.open('a').line('one')
  const first = feed.batches(open.signal)
  const { batch } = await next(first)
  logs.open('a').line('two')
  expect((await next(first)).lines).toEqual(['two'])
  batch.delivered()
  await first.return()
  expect((await next(feed.batches(open.signal))).lines).toEqual(['two'])
})

test('a busy log does not hold up the others', async () => {
  const { logs, feed } = scene()
  logs.open('busy').write('x'.repeat(99).concat('\n').repeat(4000))
  logs.open('quiet').line('here')
  const batches = feed.batches(open.signal)
  await next(batches)
  expect((await next(batches)).lines).toEqual(['here'])
})

test('a line of more than 64 KiB is cut and marked, and the next one is whole', async () => {
  const { logs, feed } = scene()
  const log = logs.open('a')
  log.line('y'.repeat(200_000))
  log.line('after')
  const texts: string[] = []
  const batches = feed.batches(open.signal)
  while (texts.length < 2) texts.push(...(await batches.next()).value!.texts)
  const [cut, after] = texts.map((text) => JSON.parse(text))
  expect([cut.msg.length, cut.truncated]).toEqual([longestLine, true])
  expect([after.msg, after.truncated]).toEqual(['after', undefined])
})

test('a message of a datagram has a limit that its escapes keep too', async () => {
  const { logs, feed } = scene({ longestMessage: 65_000 })
  logs.open('a').line('\u0001'.repeat(60_000))
  const { batch } = await next(feed.batches(open.signal))
  expect(batch.texts[0]!.length).toBeLessThanOrEqual(65_000)
  expect(JSON.parse(batch.texts[0]!).truncated).toBe(true)
})

/** Writes numbered lines of 100 bytes, and to the disk often enough. */
async function write(log: ReturnType<Logs['open']>, onDisk: LogFiles, count: number, from = 0): Promise<void> {
  for (let at = from; at < from + count; at += 2000) {
    for (let line = at; line < Math.min(at + 2000, from + count); line++) log.line(String(line).padStart(99, '0'))
    await onDisk.flush()
  }
}

test('what memory no longer has comes from the disk, across a file that was renamed, and nothing is lost', async () => {
  const { logs, onDisk, lost, feed } = scene()
  onDisk.open()
  await write(logs.open('a'), onDisk, 80_000)
  const lines = await drain(feed)
  expect(lines.length).toBe(80_000)
  expect(lines.every((line, index) => Number(line) === index)).toBe(true)
  expect(lost).toEqual([])
})

test('lines whose end is only in memory are joined with their beginning on the disk', async () => {
  const { logs, onDisk, feed } = scene()
  onDisk.open()
  const log = logs.open('a')
  log.write('begin')
  await onDisk.flush()
  log.write(`ning\n${'z'.repeat(99)}\n`)
  await onDisk.flush()
  await write(log, onDisk, 6000)
  const [first] = await drain(feed)
  expect(first).toBe('beginning')
})

test('what neither memory nor the disk has is counted once, to the byte', async () => {
  const { logs, lost, feed } = scene()
  const log = logs.open('a')
  for (let line = 0; line < 10_000; line++) log.line(String(line).padStart(99, '0'))
  const batches = feed.batches(open.signal)
  const { lines } = await next(batches)
  const [first] = lines
  const sum = () => lost.reduce((total, [, bytes]) => total + bytes, 0)
  expect(sum()).toBe(Number(first) * 100)
  await batches.return()
  for (let line = 10_000; line < 11_000; line++) log.line(String(line).padStart(99, '0'))
  const [second] = (await next(feed.batches(open.signal))).lines
  expect(Number(second)).toBeGreaterThan(Number(first))
  expect(sum()).toBe(Number(second) * 100)
})
