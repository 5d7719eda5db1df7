import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LockedError, lock } from '../../../src/programs/keeper/lock.ts'
import { identify, isAlive } from '../../../src/programs/keeper/process-identity.ts'

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

test('a process is itself, and nobody else with its number', () => {
  const self = identify(process.pid)!
  expect(isAlive(self)).toBe(true)
  expect(isAlive({ ...self, start: `${self.start}0` })).toBe(false)
  expect(identify(4_194_305)).toBeUndefined()
})
