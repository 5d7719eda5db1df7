import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openJournal } from '../../../../src/programs/node-supervisor/journal.ts'
import { destroyCluster, isCluster } from '../../../../src/programs/talosctl/cluster/destroy.ts'
import { findProgram } from '../../../../src/programs/talosctl/cluster/undo.ts'
import { talosctl } from '../peer.ts'

let state = ''
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'ichor-destroy-'))
})
afterEach(() => rmSync(state, { recursive: true }))

const cluster = (name: string) => {
  const directory = join(state, name)
  openJournal(directory)
  writeFileSync(join(directory, 'cluster.json'), '{}')
  return directory
}

test('a folder that is no cluster’s is never taken away', async () => {
  const directory = join(state, 'home')
  mkdirSync(directory)
  writeFileSync(join(directory, 'letters'), 'dear …')
  await destroyCluster(directory)
  expect(isCluster(directory)).toBe(false)
  expect(readdirSync(directory)).toEqual(['letters'])
})

test('intents that were never carried out are no obstacle, and nothing is left', async () => {
  const directory = cluster('a')
  const journal = openJournal(directory)
  journal.write({ kind: 'directory', path: join(directory, 'nodes', 'n') })
  journal.write({ kind: 'program', args: ['node-supervisor', '--node-dir', join(directory, 'nodes', 'n')] })
  journal.write({ kind: 'process', pid: 4_194_000, start: 'another boot/1' })
  await destroyCluster(directory)
  expect(existsSync(directory)).toBe(false)
})

test('what is left of a cluster whose removal broke off is a cluster still, and goes', async () => {
  const directory = join(state, 'a')
  mkdirSync(directory)
  writeFileSync(join(directory, 'destroying'), '')
  expect(isCluster(directory)).toBe(true)
  await destroyCluster(directory)
  expect(existsSync(directory)).toBe(false)
})

test('a parameter of the host is put back by the last cluster: another one inherits the duty', async () => {
  const [a, b] = [cluster('a'), cluster('b')]
  const entry = { kind: 'sysctl', name: 'net.ipv4.no_such_parameter', previous: '0' } as const
  openJournal(a).write(entry)
  await destroyCluster(a)
  expect(existsSync(a)).toBe(false)
  expect(openJournal(b).entries()).toEqual([entry])
})

test('the command does not prompt, so --yes changes nothing', async () => {
  for (const flag of ['--yes', '-y']) {
    const directory = cluster('a')
    const { code, stderr } = await talosctl([], ['cluster', 'destroy', '--name', 'a', '--state', state, flag])
    // Only root may destroy clusters.
    if (process.geteuid?.() === 0)
      expect([code, stderr, existsSync(directory)]).toEqual([0, expect.stringContaining('cluster "a" is gone'), false])
    else expect(stderr).toContain('need root')
  }
})

test('a program is found by its whole command line, not by a part of it', () => {
  expect(findProgram(['node-supervisor', '--node-dir', join(state, 'nobody')])).toEqual([])
})
