/** A selection of the Kubernetes conformance suite, at least one test of every SIG, on a real cluster with two workers. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { present } from '../../rootfs/build/present.ts'
import { succeeded } from '../cluster/cluster.ts'
import { ConformanceCluster, exactly, type SpecResult } from './suite.ts'

const chosen = readFileSync(join(import.meta.dir, 'smoke.txt'), 'utf8')
  .trimEnd()
  .split('\n')
const folder = mkdtempSync('/var/tmp/ichor-smoke-')
let made: ConformanceCluster | undefined
let results = new Map<string, SpecResult>()

beforeAll(async () => {
  made = await ConformanceCluster.create('smoke')
  const specs = await made.run({ focus: chosen.map(exactly), procs: 6 }, folder)
  results = new Map(specs.map((spec) => [spec.name, spec]))
})
afterAll(async () => {
  await made?.close()
  rmSync(folder, { recursive: true, force: true })
})

test.each(chosen)('%s', (name) => {
  const result = results.get(name)
  expect(result ? `${result.passed ? 'passed' : result.reason}` : 'not run').toBe('passed')
})

test('nothing else was chosen', () => {
  expect([...results.keys()].sort()).toEqual([...chosen].sort())
})

test('talosctl runs the suite inside the cluster, saves its results and leaves nothing', async () => {
  const { cluster } = present(made, 'the cluster')
  const node = present(cluster.nodes()[0], 'its first node').ip
  const focus = exactly('[sig-auth] ServiceAccounts should guarantee kube-root-ca.crt exist in any namespace [Conformance]')
  const { stdout, stderr } = succeeded(
    await cluster.talosctl('-n', node, 'conformance', 'kubernetes', '--mode', 'certified', '--focus', focus, '--output', folder),
  )
  expect(stdout).toContain('Ran 1 of ')
  const results = join(folder, 'v1.36', 'ichor')
  expect(stderr).toContain(results)
  expect(readFileSync(join(results, 'e2e.log'), 'utf8')).toContain('1 Passed | 0 Failed')
  expect(readFileSync(join(results, 'junit_01.xml'), 'utf8')).toMatch(/ failures="0" /)
  expect(readFileSync(join(results, 'PRODUCT.yaml'), 'utf8')).toContain('version: "v1.13.')
  expect((await cluster.kubectl(['get', 'namespace', 'conformance'])).stderr).toContain('not found')
})

test('talosctl health runs three tests of pods and services behind its checks', async () => {
  const { cluster } = present(made, 'the cluster')
  const node = present(cluster.nodes()[0], 'its first node').ip
  const { stdout, stderr } = succeeded(await cluster.talosctl('-n', node, 'health', '--run-e2e', '--wait-timeout', '5m'))
  expect(stderr).toContain('waiting for coredns to report ready: OK')
  expect(stdout).toContain('Ran 3 of ')
})
