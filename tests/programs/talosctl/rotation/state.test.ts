import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findState, readState, stateFolder, statePath, writeState } from '../../../../src/programs/talosctl/rotation/state.ts'

let home = ''
let folder = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'ichor-rotation-'))
  folder = stateFolder({ TALOS_HOME: home })
})
afterEach(() => rmSync(home, { recursive: true }))

const pair = (name: string) => ({ crt: `${name}-crt`, key: `${name}-key` })
const machine = { old: { crt: 'old' }, next: pair('next'), oldClient: pair('old-client'), nextClient: pair('next-client'), done: false }

test('is readable by its owner only, and found again by its cluster', async () => {
  await writeState(folder, { cluster: 'a/b=', machine })
  expect([statSync(folder).mode & 0o777, statSync(statePath(folder, 'a/b=')).mode & 0o777]).toEqual([0o700, 0o600])
  expect(await readState(folder, 'a/b=')).toEqual({ cluster: 'a/b=', machine })
  expect(await readState(folder, 'other')).toEqual({ cluster: 'other' })
})

test('is found by the client certificate of before and of afterwards, of which the machines may refuse one', async () => {
  await writeState(folder, { cluster: 'a', machine })
  expect((await findState(folder, 'old-client-crt'))?.cluster).toBe('a')
  expect((await findState(folder, 'next-client-crt'))?.cluster).toBe('a')
  expect(await findState(folder, 'another')).toBeUndefined()
})

test('is removed when no rotation is under way', async () => {
  await writeState(folder, { cluster: 'a', machine })
  await writeState(folder, { cluster: 'a' })
  expect(existsSync(statePath(folder, 'a'))).toBe(false)
  await writeState(folder, { cluster: 'a' })
})

test('a damaged one is never overwritten: it may hold keys that are in use', async () => {
  await writeState(folder, { cluster: 'a', machine })
  writeFileSync(statePath(folder, 'a'), '{"cluster":"a","machine":{')
  await expect(readState(folder, 'a')).rejects.toThrow('move it away, it may hold keys that are in use')
})

test('a folder that cannot be written ends the rotation before it begins', async () => {
  writeFileSync(join(home, 'rotations'), '')
  await expect(writeState(folder, { cluster: 'a', machine })).rejects.toThrow('changes nothing without it')
})
