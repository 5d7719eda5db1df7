/**
 * The CIS benchmark by kube-bench on a real cluster: whatever it does not pass is known, with its reason. Building kube-bench
 * takes minutes, so the test command leaves it out: `sudo bun test --timeout 900000 ./tests/long/benchmark.story.ts`.
 */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, succeeded, TestCluster } from '../cluster/cluster.ts'

const cluster = new TestCluster('bench')
const scratch = mkdtempSync('/var/tmp/ichor-bench-')
const module = join(import.meta.dir, '../interop/kube-bench')
let program = ''
let config = ''

async function run(argv: string[], cwd = module) {
  const env = { ...process.env, CGO_ENABLED: '0' }
  const child = Bun.spawn(argv, { cwd, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  return succeeded({ code, stdout, stderr })
}

beforeAll(async () => {
  const name = 'github.com/aquasecurity/kube-bench'
  program = join(scratch, 'kube-bench')
  await run(['go', 'build', '-o', program, name])
  config = join((await run(['go', 'list', '-m', '-f', '{{.Dir}}', name])).stdout.trim(), 'cfg')
  await cluster.create(
    ...['--cidr', '10.70.0.0/24'],
    ...['--config-patch', JSON.stringify({ machine: { kubelet: { extraArgs: { 'rotate-server-certificates': 'true' } } } })],
  )
})
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
  rmSync(scratch, { recursive: true, force: true })
})

interface Report {
  Controls: { tests: { results: { test_number: string; status: string }[] }[] }[]
}

/** Every check of these targets with what came of it, in order. */
async function checks(node: string, targets: string): Promise<string[]> {
  const root = join(scratch, `${node}-${targets}`)
  mkdirSync(root, { recursive: true })
  const inside = ['nsenter', '-t', String(cluster.initOf(node)), '-p', '--', 'unshare', '-m', '--propagation', 'private']
  const { stdout } = await run([...inside, join(module, 'run.sh'), root, config, program, targets])
  const { Controls } = JSON.parse(stdout) as Report
  return Controls.flatMap(({ tests }) => tests.flatMap(({ results }) => results.map((one) => `${one.test_number} ${one.status}`)))
}

/** What is known not to pass: who, number, status, reason. */
const known = readFileSync(join(import.meta.dir, 'benchmark.expected.tsv'), 'utf8')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => line.split('\t'))

test.each([
  ['controlplane', 'bench-controlplane-1', 'master,etcd,controlplane,node', 90],
  ['worker', 'bench-worker-1', 'node', 20],
])('what a %s does not pass is what is known', async (role, node, targets, least) => {
  // Serving certificates come a moment after the cluster is there.
  await eventually(async () => expect(cluster.processIn(node, '/usr/local/bin/kubelet')).toBeNumber())
  const found = await checks(node, targets)
  expect(found.length).toBeGreaterThan(least)
  const expected = known.filter(([who]) => who === role).map(([, number, status]) => `${number} ${status}`)
  expect(found.filter((one) => !one.endsWith(' PASS')).sort()).toEqual(expected.sort())
})

test('every exception has a reason', () => {
  expect(known.filter((entry) => entry.length !== 4 || !entry[3])).toEqual([])
})
