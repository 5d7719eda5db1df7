import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mergeTalosconfig, removeContexts } from '../../../../src/programs/talosctl/cluster/client-files.ts'
import type { Io } from '../../../../src/programs/talosctl/io.ts'

let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'ichor-client-'))
})
afterEach(() => rmSync(home, { recursive: true }))

const io = () => ({ env: { HOME: home }, stderr: { write() {} } }) as unknown as Io
const context = (ca: string) => ({ endpoints: ['10.5.0.2'], nodes: [], ca, crt: 'c', key: 'k' })
const cluster = (name: string) => {
  const directory = join(home, name)
  mkdirSync(directory)
  return directory
}

test('a first configuration is made for its owner alone', async () => {
  const { file } = await mergeTalosconfig(io(), cluster('a'), 'a', context('A'))
  expect(file).toBe(join(home, '.talos', 'config'))
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readFileSync(file, 'utf8')).toContain('context: a\n')
})

test('what was there stays, comments too, and a taken name gets a number', async () => {
  const file = join(home, 'config')
  writeFileSync(file, '# mine\ncontext: a\ncontexts:\n    a:\n        endpoints: [1.2.3.4] # office\n        ca: OTHER\n')
  const merged = await mergeTalosconfig(io(), cluster('a'), 'a', context('A'), file)
  expect(merged.context).toBe('a-1')
  const text = readFileSync(file, 'utf8')
  expect(text).toContain('# mine')
  expect(text).toContain('1.2.3.4')
  expect(text).toContain('# office')
  expect(text).toContain('context: a-1\n')
})

test('merging the same cluster again changes its own context only', async () => {
  const directory = cluster('a')
  const file = join(home, 'config')
  await mergeTalosconfig(io(), directory, 'a', context('A'), file)
  const once = readFileSync(file, 'utf8')
  const again = await mergeTalosconfig(io(), directory, 'a', context('A'), file)
  expect(again.context).toBe('a')
  expect(readFileSync(file, 'utf8')).toBe(once)
})

test('a cluster that goes takes its context with it and leaves the rest', async () => {
  const file = join(home, 'config')
  const [a, b] = [cluster('a'), cluster('b')]
  await mergeTalosconfig(io(), a, 'a', context('A'), file)
  await mergeTalosconfig(io(), b, 'b', context('B'), file)
  await removeContexts(io(), b)
  const text = readFileSync(file, 'utf8')
  expect(text).toContain('context: a\n')
  expect(text).not.toContain('ca: B')
})

test('a cluster after the last one has gone is written as readably as the first', async () => {
  const first = cluster('a')
  const { file } = await mergeTalosconfig(io(), first, 'a', context('A'))
  const once = readFileSync(file, 'utf8')
  await removeContexts(io(), first)
  await mergeTalosconfig(io(), cluster('b'), 'a', context('A'))
  expect(readFileSync(file, 'utf8').split('\n').sort()).toEqual(once.split('\n').sort())
})
