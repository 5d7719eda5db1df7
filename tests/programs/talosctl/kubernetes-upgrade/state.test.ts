import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import {
  begin,
  readState,
  removeState,
  statePath,
  type UpgradeState,
  writeState,
} from '../../../../src/programs/talosctl/kubernetes-upgrade/state.ts'

let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'ichor-upgrade-'))
})
afterEach(() => rmSync(home, { recursive: true }))

const path = () => statePath({ TALOS_HOME: home }, 'a/b=')
const node = (name: string, tag: string) => ({
  address: name,
  name,
  controlPlane: true,
  images: { kubelet: { configured: `kubelet:${tag}`, running: `kubelet:${tag}` } },
})
const state = (from: string, ...nodes: UpgradeState['nodes']): UpgradeState => ({
  cluster: 'a/b=',
  from,
  to: '1.36.3',
  done: false,
  manifests: false,
  nodes,
})

test('the state is kept in a file that only its owner may read, until it is removed', async () => {
  expect(path()).toBe(join(home, 'kubernetes-upgrades', 'a%2Fb%3D.json'))
  expect(await readState(path())).toBeUndefined()
  const written = state('1.35.4', node('one', 'v1.35.4'))
  await writeState(path(), written)
  expect(await readState(path())).toEqual(written)
  expect(statSync(path()).mode & 0o777).toBe(0o600)
  await removeState(path())
  expect(await readState(path())).toBeUndefined()
})

test('a file of another kind is not overwritten', async () => {
  mkdirSync(dirname(path()), { recursive: true })
  writeFileSync(path(), '{}')
  await expect(readState(path())).rejects.toThrow('is not the state of a Kubernetes upgrade')
})

test('an interrupted upgrade continues with the images of before it began, and records nodes that joined since', () => {
  const earlier = state('1.35.4', node('one', 'v1.35.4'), node('gone', 'v1.35.4'))
  const now = state('1.36.3', node('one', 'v1.36.3'), node('new', 'v1.36.3'))
  expect(begin(earlier, now)).toEqual({ ...now, from: '1.35.4', nodes: [node('one', 'v1.35.4'), node('new', 'v1.36.3')] })
})

test('after one that was completed the next begins with what is there', () => {
  const now = state('1.36.3', node('one', 'v1.36.3'))
  expect(begin({ ...state('1.35.4', node('one', 'v1.35.4')), done: true }, now)).toEqual(now)
  expect(begin(undefined, now)).toEqual(now)
})
