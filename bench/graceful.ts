/**
 * How pods end when their node restarts: pods with a hook of 2 s that end 3 s after their signal, and critical ones that end 1 s after it,
 * write their last words to the node's disk. Prints how many had all their time, and how long each phase of the restart took.
 *
 *   sudo bun bench/graceful.ts [--pods 20] [--runs 3]
 *
 * It makes a cluster of its own, whose worker restarts, and takes it away again. The pods' program needs Go.
 */
import { readFileSync, rmSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { eventually, succeeded, TestCluster } from '../tests/cluster/cluster.ts'
import { answerAsRegistry, buildGuest, guestImage } from '../tests/interop/guest.ts'

const { values } = parseArgs({ options: { pods: { type: 'string', default: '20' }, runs: { type: 'string', default: '3' } } })
const [count, runs] = [values.pods, values.runs].map(Number)
if (!Number.isInteger(count) || !Number.isInteger(runs) || Number(count) < 2 || Number(count) > 100 || Number(runs) < 1) {
  console.error('--pods takes a number from 2 to 100, --runs one from 1')
  process.exit(64)
}
const cluster = new TestCluster('bench-graceful')
const [gateway, worker] = ['10.88.0.1', '10.88.0.3']
const node = 'bench-graceful-worker-1'
const folder = () => `/proc/${cluster.initOf(node)}/root/var/words`
const names = Array.from({ length: Number(count) }, (_, i) => `pod-${i}`)
/** Every fourth pod is critical: the kubelet ends those last. */
const isCritical = (index: number) => index % 4 === 3

function pod(name: string, index: number): object {
  const hook = { exec: { command: ['/guest', 'append', `/words/${name}`, 'hook', '2'] } }
  const container = {
    name: 'guest',
    image: 'guests.test/guest:1',
    args: ['words', `/words/${name}`, isCritical(index) ? '1' : '3'],
    volumeMounts: [{ name: 'words', mountPath: '/words' }],
    ...(!isCritical(index) && { lifecycle: { preStop: hook } }),
  }
  const spec = {
    nodeName: node,
    restartPolicy: 'Never',
    containers: [container],
    volumes: [{ name: 'words', hostPath: { path: '/var/words', type: 'DirectoryOrCreate' } }],
    ...(isCritical(index) && { priorityClassName: 'system-node-critical' }),
  }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec }
}

/** The lines that a pod wrote, with their times in milliseconds since the epoch. */
function wordsOf(name: string): { at: number; text: string }[] {
  const lines = readFileSync(join(folder(), name), 'utf8').trim().split('\n')
  return lines.map((line) => ({ at: Number(line.split(' ')[0]), text: line.slice(line.indexOf(' ') + 1) }))
}

async function restart(run: number): Promise<void> {
  succeeded(await cluster.kubectl(['apply', '-f', '-'], names.map((name, index) => JSON.stringify(pod(name, index))).join('\n---\n')))
  await eventually(async () => {
    if (names.some((name) => wordsOf(name).at(-1)?.text !== 'started')) throw new Error('not all pods have started')
  }, 300)
  const load = loadavg()[0]?.toFixed(1)
  const began = Date.now()
  succeeded(await cluster.talosctl('--nodes', worker, 'reboot', '--timeout', '5m'))
  const back = Date.now()
  const all = names.map(wordsOf)
  const whole = (index: number) =>
    isCritical(index) ? 'started, got terminated, done' : 'started, hook began, hook ended, got terminated, done'
  const intact = all.filter((words, index) => words.map(({ text }) => text).join(', ') === whole(index)).length
  const times = (critical: boolean, at: number) => all.flatMap((words, i) => (isCritical(i) === critical ? [words.at(at)?.at ?? 0] : []))
  const seconds = (time: number) => `${((time - began) / 1000).toFixed(1)} s`
  const phases = [
    `first hook ${seconds(Math.min(...times(false, 1)))}`,
    `last word of a pod ${seconds(Math.max(...times(false, -1)))}`,
    `of a critical one ${seconds(Math.max(...times(true, -1)))}`,
    `the node is back ${seconds(back)}`,
  ]
  console.log(`run ${run}: ${intact} of ${names.length} pods had all their time (${phases.join(', ')}; load ${load})`)
  succeeded(await cluster.kubectl(['delete', 'pods', '--all', '--grace-period', '0', '--force']))
  rmSync(folder(), { recursive: true })
  if (intact !== names.length) process.exitCode = 1
}

buildGuest(join(cluster.home, 'guest'))
const images = { guest: guestImage(join(cluster.home, 'guest')) }
const registry = Bun.serve({ port: 0, hostname: '0.0.0.0', fetch: (request) => answerAsRegistry(images, request) })
try {
  await cluster.create('--cidr', '10.88.0.0/24', '--registry-mirror', `guests.test=http://${gateway}:${registry.port}`)
  succeeded(await cluster.kubectl(['label', 'namespace', 'default', 'pod-security.kubernetes.io/enforce=privileged']))
  for (let run = 1; run <= Number(runs); run++) await restart(run)
} finally {
  await cluster.end()
  await registry.stop(true)
}
