/** Logs on a real file system, over starts of a machine. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import * as files from '../../../src/linux/fs/files.ts'
import { LogFiles } from '../../../src/os/runtime/log-files.ts'
import { Logs } from '../../../src/supervise/logs.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ichor-logs-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** One start of a machine. */
function startMachine() {
  const logs = new Logs()
  return { logs, on: new LogFiles({ files, log: silent, logs: () => logs.entries() }, folder) }
}

/** A start that logs a text and ends. */
async function started(text: string, id = 'kubelet'): Promise<void> {
  const { logs, on } = startMachine()
  on.open()
  logs.open(id).write(text)
  await on.close()
}

const textOf = (log: ReturnType<LogFiles['previous']>, lines = -1) => log && Buffer.concat([...log.read(lines)]).toString()
const file = (name: string) => readFileSync(join(folder, name), 'utf8')

test('what was logged before there was a disk is written when there is one, and nothing once it is released', async () => {
  const { logs, on } = startMachine()
  logs.open('machined').line('early')
  await on.flush()
  on.open()
  await on.flush()
  expect(file('machined.log')).toBe('early\n')
  expect(statSync(join(folder, 'machined.log')).mode & 0o777).toBe(0o640)
  logs.open('machined').line('late')
  await on.close()
  logs.open('machined').line('too late')
  await on.flush()
  expect(file('machined.log')).toBe('early\nlate\n')
})

test('between full flushes only logs are written that hold back much', async () => {
  const { logs, on } = startMachine()
  on.open()
  logs.open('small').line('a line')
  logs.open('large').write('x'.repeat(200_000))
  await on.flush({ large: true })
  expect(statSync(join(folder, 'large.log')).size).toBe(200_000)
  expect(files.exists(join(folder, 'small.log'))).toBe(false)
})

test('a file of 5 MiB is renamed, and one such file is kept', async () => {
  for (const mark of ['a', 'b', 'c']) {
    writeFileSync(join(folder, 'kubelet.log'), mark.repeat(5 << 20))
    await started(`after ${mark}\n`)
    expect(file('kubelet.log')).toBe(`after ${mark}\n`)
    expect(file('kubelet.log.1')).toStartWith(mark)
  }
})

test('a link is not followed, and the other logs are written', async () => {
  const outside = join(folder, 'outside')
  writeFileSync(outside, '')
  symlinkSync(outside, join(folder, 'kubelet.log'))
  const { logs, on } = startMachine()
  on.open()
  logs.open('kubelet').line('through the link')
  logs.open('apid').line('first')
  await on.close()
  expect([file('outside'), file('apid.log')]).toEqual(['', 'first\n'])
})

describe('the log of the start before', () => {
  test('is what that start wrote, and nothing older', async () => {
    await started('one\n')
    await started('two\nthree\n')
    const { logs, on } = startMachine()
    logs.open('kubelet').line('now')
    on.open()
    await on.flush()
    expect(textOf(on.previous('kubelet'))).toBe('two\nthree\n')
    expect(textOf(on.previous('kubelet'), 1)).toBe('three\n')
    expect(textOf(on.previous('kubelet'), 9)).toBe('two\nthree\n')
  })

  test('is there before anything of this start is written', async () => {
    await started('one\n')
    const { on } = startMachine()
    on.open()
    expect(textOf(on.previous('kubelet'))).toBe('one\n')
  })

  test('is none for a log that the start before did not write, and without a start before', async () => {
    await started('one\n', 'etcd')
    await started('two\n')
    const { on } = startMachine()
    expect(on.previous('kubelet')).toBeUndefined()
    on.open()
    expect([on.previous('etcd'), on.previous('../etcd')]).toEqual([undefined, undefined])
  })

  test('goes on in the next file when it was renamed meanwhile', async () => {
    const { logs, on } = startMachine()
    on.open()
    logs.open('kubelet').line('first')
    await on.flush()
    for (let i = 0; i < 21; i++) {
      logs.open('kubelet').write('x'.repeat(256 << 10))
      await on.flush()
    }
    logs.open('kubelet').line('last')
    await on.close()
    const next = startMachine()
    next.logs.open('kubelet').line('now')
    next.on.open()
    await next.on.flush()
    const text = textOf(next.on.previous('kubelet')) ?? ''
    expect([text.slice(0, 6), text.slice(-6), text.length]).toEqual(['first\n', 'xlast\n', 6 + 21 * (256 << 10) + 5])
    expect(files.exists(join(folder, 'kubelet.log.1'))).toBe(true)
  })

  test('cannot be read when its index is damaged; the next start has one again', async () => {
    await started('one\n')
    writeFileSync(join(folder, '.starts.json'), '{')
    const { on } = startMachine()
    on.open()
    expect(on.previous('kubelet')).toBeUndefined()
    await started('two\n')
    const next = startMachine()
    next.on.open()
    expect(textOf(next.on.previous('kubelet'))).toBe('two\n')
  })
})
