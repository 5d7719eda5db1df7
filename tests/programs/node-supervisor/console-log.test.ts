import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConsoleLog } from '../../../src/programs/node-supervisor/console-log.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ichor-console-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

test('the log never takes more than twice its limit and keeps the latest bytes', () => {
  const file = join(directory, 'console.log')
  const log = new ConsoleLog(file, 100)
  for (let i = 0; i < 50; i++) log.write(Buffer.from(`line ${String(i).padStart(3, '0')}\n`))
  log.close()
  expect(statSync(file).size + statSync(`${file}.1`).size).toBeLessThanOrEqual(200)
  expect(`${readFileSync(`${file}.1`)}${readFileSync(file)}`).toEndWith('line 048\nline 049\n')
})

test('a log opened again goes on where it was', () => {
  const file = join(directory, 'console.log')
  for (const text of ['a', 'b']) {
    const log = new ConsoleLog(file, 100)
    log.write(Buffer.from(text))
    log.close()
  }
  expect(readFileSync(file, 'utf8')).toBe('ab')
  expect(existsSync(`${file}.1`)).toBe(false)
})
