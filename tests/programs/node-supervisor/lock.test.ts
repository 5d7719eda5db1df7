import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LockedError, lock } from '../../../src/programs/node-supervisor/lock.ts'
import { identify, isAlive } from '../../../src/programs/node-supervisor/process-identity.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ichor-lock-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

test('a held lock is refused and a given back one is free', () => {
  const file = join(directory, 'lock')
  const unlock = lock(file)
  expect(() => lock(file)).toThrow(LockedError)
  unlock()
  expect(existsSync(file)).toBe(false)
  lock(file)()
  expect(readdirSync(directory)).toEqual([])
})

test('a lock whose holder is gone is void, also when its number runs again as another process', () => {
  const file = join(directory, 'lock')
  const self = identify(process.pid)!
  writeFileSync(file, JSON.stringify({ pid: self.pid, start: 'another boot/1' }))
  const unlock = lock(file)
  unlock()
})

test('of many that find the same stale lock one at a time gets it', async () => {
  const file = join(directory, 'lock')
  const log = join(directory, 'log')
  const module = join(import.meta.dir, '../../../src/programs/node-supervisor/lock.ts')
  const program = `
    import { lock, LockedError } from ${JSON.stringify(module)}
    import { appendFileSync } from 'node:fs'
    const shared = new Int32Array(new SharedArrayBuffer(4))
    for (let round = 0; round < 40; round++)
      for (;;)
        try {
          const unlock = lock(${JSON.stringify(file)})
          appendFileSync(${JSON.stringify(log)}, 'in ')
          Atomics.wait(shared, 0, 0, 1)
          appendFileSync(${JSON.stringify(log)}, 'out\\n')
          if (round % 2 === 0) unlock()
          else (await import('node:fs')).writeFileSync(${JSON.stringify(file)}, '{"pid":4194305,"start":"gone"}')
          break
        } catch (error) {
          if (!(error instanceof LockedError)) throw error
          Atomics.wait(shared, 0, 0, 1)
        }`
  writeFileSync(file, '{"pid":4194305,"start":"gone"}')
  const children = Array.from({ length: 3 }, () => Bun.spawn([process.execPath, '-e', program], { stderr: 'inherit' }))
  expect(await Promise.all(children.map(({ exited }) => exited))).toEqual([0, 0, 0])
  expect(readFileSync(log, 'utf8')).toBe('in out\n'.repeat(120))
})

test('a process is itself, and nobody else with its number', () => {
  const self = identify(process.pid)!
  expect(isAlive(self)).toBe(true)
  expect(isAlive({ ...self, start: `${self.start}0` })).toBe(false)
  expect(identify(4_194_305)).toBeUndefined()
})
