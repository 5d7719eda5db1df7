/**
 * A container node sends its logs to one receiver in the test network and to one that is dead, serves its metrics by token, and
 * delivers what waits before it restarts.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { eventually, succeeded, TestCluster } from '../cluster.ts'

const cluster = new TestCluster('shipping')
const [gateway, node] = ['10.66.0.1', '10.66.0.2']
const dead = 'tcp://10.66.0.1:9'
const token = '0123456789abcdef0123456789abcdef'
const messages: Record<string, unknown>[] = []

/** Receives lines of JSON. */
const receiver = Bun.listen<{ rest: string }>({
  hostname: '0.0.0.0',
  port: 0,
  socket: {
    open: (socket) => {
      socket.data = { rest: '' }
    },
    data(socket, chunk) {
      const lines = `${socket.data.rest}${chunk.toString('utf8')}`.split('\n')
      socket.data.rest = lines.pop() ?? ''
      for (const line of lines) messages.push(JSON.parse(line) as Record<string, unknown>)
    },
  },
})

beforeAll(async () => {
  const live = `tcp://${gateway}:${receiver.port}`
  const destinations = [live, dead].map((endpoint) => ({ endpoint, format: 'json_lines', extraTags: { site: 'east' } }))
  const telemetry = { apiVersion: 'v1alpha1', kind: 'TelemetryConfig', prometheus: { listen: '0.0.0.0:9100', bearerToken: token } }
  const legacy = { machine: { logging: { destinations } }, cluster: { proxy: { disabled: true }, coreDNS: { disabled: true } } }
  await cluster.create(
    ...['--workers', '0', '--cidr', '10.66.0.0/24', '--skip-k8s-node-readiness-check'],
    ...['--config-patch', JSON.stringify(legacy), '--config-patch', JSON.stringify(telemetry)],
  )
}, 400_000)
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
  receiver.stop(true)
})

/** Texts that the receiver has of a log. */
const received = (service: string) => new Set(messages.filter((one) => one['talos-service'] === service).map(({ msg }) => String(msg)))

test('the lines of a service are those of talosctl logs, and the dead receiver costs the other nothing', async () => {
  await eventually(async () => {
    const { stdout } = succeeded(await cluster.on(node, 'logs', 'machined'))
    // Lines of init are a time and a text; other services write forms of their own, which the message has as fields.
    const lines = stdout.split('\n').filter((line) => line !== '')
    expect(lines.length).toBeGreaterThan(20)
    const texts = [...received('machined')]
    expect(lines.slice(0, -5).filter((line) => !texts.some((text) => text !== '' && line.includes(text)))).toEqual([])
  })
  expect(messages.every(({ site }) => site === 'east')).toBe(true)
  const { stdout } = succeeded(await cluster.on(node, 'get', 'deliveries', '-o', 'yaml'))
  expect(stdout).toContain(`destination: ${dead}`)
  expect(stdout).toMatch(/connected: false\s+sent: 0\s/)
})

test('metrics are served by token to who trusts the authority of the machine API, and to nobody else', async () => {
  const { context, contexts } = parse(readFileSync(cluster.env.TALOSCONFIG ?? '', 'utf8')) as {
    context: string
    contexts: Record<string, { ca: string }>
  }
  const ca = Buffer.from(contexts[context]?.ca ?? '', 'base64').toString()
  const get = (headers: Record<string, string>) => fetch(`https://${node}:9100/metrics`, { tls: { ca }, headers })
  await eventually(async () => expect((await get({})).status).toBe(401))
  const text = await (await get({ authorization: `Bearer ${token}` })).text()
  for (const line of [
    /^ichor_service_running\{service="etcd"\} 1$/m,
    /^ichor_service_starts_total\{service="metricsd"\} 1$/m,
    /^ichor_certificate_expiration_timestamp_seconds\{certificate="etcd-peer"\} \d+$/m,
    /^ichor_delivery_connected\{source="logs",destination="tcp:\/\/10\.66\.0\.1:9\/?"\} 0$/m,
    /^node_filesystem_avail_bytes\{.*mountpoint="\/var"\} \d+$/m,
    /^node_scrape_collector_success\{collector="etcd"\} 1$/m,
  ])
    expect(text).toMatch(line)
  expect(text).not.toMatch(/^node_scrape_collector_success\{.*\} 0$/m)
})

test('a node that restarts delivers what waits first', async () => {
  const before = messages.length
  succeeded(await cluster.on(node, 'reboot', '--wait=false'))
  await eventually(async () => {
    const later = messages.slice(before).map(({ msg }) => String(msg))
    expect(later.some((text) => text.includes('reboot'))).toBe(true)
    expect(messages.slice(before).some((one) => one['talos-service'] === 'etcd')).toBe(true)
  })
}, 200_000)
