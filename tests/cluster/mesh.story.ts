/** KubeSpan between container nodes, on a kernel that has WireGuard or in user space. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eventually, succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('mesh')
const [first, second] = ['10.67.0.2', '10.67.0.3']
const worker = 'mesh-worker-1'

interface Peer {
  readonly node: string
  readonly spec: { readonly state: string; readonly endpoint: string; readonly receiveBytes: number; readonly transmitBytes: number }
}

/** The only peer of each node, as its status has it. */
async function peers(): Promise<Peer[]> {
  const { stdout } = succeeded(await cluster.talosctl('get', 'kubespanpeerstatuses', '-n', `${first},${second}`, '-o', 'json'))
  const found = stdout
    .split(/^(?=\{)/m)
    .filter((text) => text.trim() !== '')
    .map((text) => JSON.parse(text) as Peer)
  if (found.length !== 2) throw new Error(`${found.length} peers`)
  return found
}

const up = () =>
  eventually(async () => {
    const found = await peers()
    if (found.some(({ spec }) => spec.state !== 'up')) throw new Error(JSON.stringify(found))
    return found
  })

beforeAll(async () => {
  await cluster.create('--workers', '1', '--with-kubespan', '--cidr', '10.67.0.0/24')
}, 300_000)
afterAll(() => cluster.end())

test('each node has the other as a peer that is up', async () => {
  const found = await up()
  expect(found.map(({ spec }) => spec.endpoint).sort()).toEqual([`${first}:51820`, `${second}:51820`])
}, 120_000)

test('what nodes send each other is encrypted', async () => {
  const before = await peers()
  const capture = cluster.start('pcap', '-n', second, '--interface', 'eth0', '--duration', '8s')
  for (let count = 0; count < 5; count++) succeeded(await cluster.kubectl(['get', '--raw', `/api/v1/nodes/${worker}/proxy/metrics`]))
  const text = await new Response(capture.stdout).text()
  await capture.exited
  const between = text.split('\n').filter((line) => line.includes(first) && line.includes(second))
  expect(between.length).toBeGreaterThan(10)
  // A later fragment has no ports: what it belongs to is seen by the first one, which is among the lines as well.
  const permitted = /51820|\barp\b|a later fragment/i
  expect(between.filter((line) => !permitted.test(line))).toEqual([])
  const moved = (found: Peer[]) => found.reduce((sum, { spec }) => sum + spec.transmitBytes, 0)
  await eventually(async () => {
    if (moved(await peers()) - moved(before) < 100_000) throw new Error('the counters of the mesh did not grow')
  })
}, 120_000)

test('a program of the mesh that is killed is started again', async () => {
  const pid = cluster.processIn(worker, '/usr/bin/wireguard kubespan')
  if (pid === undefined) return // this kernel has WireGuard
  process.kill(pid, 'SIGKILL')
  await eventually(async () => {
    const again = cluster.processIn(worker, '/usr/bin/wireguard kubespan')
    if (again === undefined || again === pid) throw new Error('wireguard is not running')
  })
  await up()
  succeeded(await cluster.kubectl(['get', '--raw', `/api/v1/nodes/${worker}/proxy/healthz`]))
}, 180_000)
