/**
 * Debian's Prometheus scrapes a metricsd on a real socket, by certificate and by token; promtool judges the text, the alert rules
 * and their cases.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../src/cosi/log.ts'
import { ApiCertificate } from '../../src/os/secrets/resources/api-certificate.ts'
import { metrics } from '../../src/os/telemetry/api/metrics.ts'
import { collect } from '../../src/os/telemetry/metrics/collect.ts'
import { exposition } from '../../src/os/telemetry/metrics/exposition.ts'
import { newCA, newCertificate, toBase64 } from '../../src/pki/certificate.ts'
import { endpointIn } from '../../src/programs/metricsd/endpoint.ts'
import { run } from '../../src/programs/metricsd/metricsd.ts'
import { metricsdAccess } from '../../src/rpc/server/resource-access.ts'
import { type Server, serveUnix } from '../../src/rpc/server/server.ts'
import { stateMethods } from '../../src/rpc/server/state.ts'
import { eventually } from '../cluster/cluster.ts'
import { fill, machine } from '../os/telemetry/metrics/machine.ts'
import { freePort } from '../support/free-port.ts'

const prometheus = Bun.which('prometheus')
const promtool = Bun.which('promtool')
if (!prometheus || !promtool) console.log('skipped: needs prometheus and promtool (apt-get install prometheus)')

const folder = mkdtempSync(join(tmpdir(), 'ichor-prometheus-'))
const rules = join(import.meta.dir, '../../docs/observability')
const path = (name: string) => join(folder, name)
const lifetime = 24 * 3600_000
const os = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
const monitoring = newCA({ subject: { organizations: ['monitoring'] }, kind: 'ecdsa' })
const token = '0123456789abcdef0123456789abcdef'
const stop = new AbortController()
let machined: Server
let running: Promise<void>
let server: Bun.Subprocess
let port: number
let ui: number
let node: Awaited<ReturnType<typeof machine>>

/** Runs promtool; its exit code and what it printed. */
function judged(args: readonly string[], input = ''): { code: number; output: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync([promtool ?? '', ...args], { stdin: Buffer.from(input), cwd: rules })
  return { code: exitCode, output: `${stdout}${stderr}` }
}

const scrape = (name: string, more: string) => `
  - job_name: ${name}
    scheme: https
    scrape_interval: 2s
    scrape_timeout: 2s
    tls_config: { ca_file: ${path('ca.crt')}${more.startsWith('cert') ? `, ${more}` : ''} }
    ${more.startsWith('cert') ? '' : more}
    static_configs: [{ targets: ['127.0.0.1:${port}'] }]`

describe.skipIf(!prometheus || !promtool)('prometheus', () => {
  beforeAll(async () => {
    node = await machine()
    node.store.register(ApiCertificate)
    fill(node.store)
    const own = newCertificate({ ca: os, subject: { commonName: 'one' }, sans: { ips: ['127.0.0.1'] }, usage: ['serverAuth'], lifetime })
    const pair = { crt: toBase64(own.crt), key: toBase64(own.key) }
    node.store.put(ApiCertificate, 'api', { server: pair, skipVerifyingClientCert: false })
    const client = newCertificate({ ca: monitoring, subject: { commonName: 'prometheus' }, usage: ['clientAuth'], lifetime })
    ;[port, ui] = [await freePort(), await freePort()]
    const tokenDigest = createHash('sha256').update(token).digest('hex')
    const endpoint = { listen: `127.0.0.1:${port}`, clientCA: monitoring.crt, tokenDigest }
    const config = `scrape_configs:${[
      scrape('certificate', `cert_file: ${path('client.crt')}, key_file: ${path('client.key')}`),
      scrape('token', `authorization: { credentials_file: ${path('token')} }`),
      scrape('wrong-token', 'authorization: { credentials: ffffffffffffffffffffffffffffffff }'),
      scrape('nothing', 'honor_labels: false'),
    ].join('')}\nrule_files: [${join(rules, 'alerts.yaml')}]\n`
    const files = { 'endpoint.json': JSON.stringify(endpoint), 'ca.crt': os.crt, 'client.crt': client.crt, 'client.key': client.key, token }
    for (const [name, text] of Object.entries({ ...files, 'prometheus.yml': config })) writeFileSync(path(name), text)
    const methods = [...stateMethods(metricsdAccess, 'anyone'), { ...metrics(node), access: 'anyone' as const }]
    machined = await serveUnix({ path: path('runtime.sock') }, { methods, store: node.store, log: silent })
    running = run(endpointIn(path('endpoint.json')), path('runtime.sock'), silent, stop.signal)
    const args = [`--config.file=${path('prometheus.yml')}`, `--storage.tsdb.path=${path('data')}`, `--web.listen-address=127.0.0.1:${ui}`]
    server = Bun.spawn([prometheus ?? '', ...args], { stdout: 'ignore', stderr: Bun.file(path('log')) })
  }, 60_000)
  afterAll(async () => {
    server?.kill()
    await server?.exited
    stop.abort()
    await running
    await machined?.close()
    node?.runtime.stop()
  })

  const query = async (expression: string) => {
    const response = await fetch(`http://127.0.0.1:${ui}/api/v1/query?query=${encodeURIComponent(expression)}`)
    const { data } = (await response.json()) as { data: { result: { metric: Record<string, string>; value: [number, string] }[] } }
    return data.result
  }

  test('scrapes by certificate and by token, and is refused with neither', async () => {
    await eventually(async () => {
      const up = await query('up')
      expect(Object.fromEntries(up.map(({ metric, value }) => [metric.job, value[1]]))).toEqual({
        certificate: '1',
        token: '1',
        'wrong-token': '0',
        nothing: '0',
      })
    })
    const { data } = (await (await fetch(`http://127.0.0.1:${ui}/api/v1/targets`)).json()) as {
      data: { activeTargets: { scrapePool: string; lastError: string }[] }
    }
    const errors = data.activeTargets
      .filter(({ lastError }) => lastError !== '')
      .map(({ scrapePool, lastError }) => [scrapePool, lastError])
    expect(errors.sort()).toEqual([
      ['nothing', 'server returned HTTP status 401 Unauthorized'],
      ['wrong-token', 'server returned HTTP status 401 Unauthorized'],
    ])
  }, 60_000)

  test('has the same series as the text, with its types', async () => {
    const series = exposition(collect(node))
      .split('\n')
      .filter((line) => /^(node|ichor)_/.test(line) && !line.startsWith('node_scrape')).length
    const [found] = await query('count({job="token",__name__=~"(node|ichor)_.*",__name__!~"node_scrape.*"})')
    expect(Number(found?.value[1])).toBe(series)
    expect((await query('ichor_etcd_member_in_use_bytes{job="certificate",member="two"}'))[0]?.value[1]).toBe('2048')
    const response = await fetch(`http://127.0.0.1:${ui}/api/v1/metadata?limit=2000`)
    const { data } = (await response.json()) as { data: Record<string, { type: string }[]> }
    const types = ['node_cpu_seconds_total', 'node_load1', 'ichor_delivery_sent_total', 'node_vmstat_oom_kill'].map(
      // From OpenMetrics the name of a counter has no suffix here.
      (name) => (data[name] ?? data[name.replace(/_total$/, '')])?.[0]?.type,
    )
    expect(types).toEqual(['counter', 'gauge', 'counter', 'unknown'])
  })

  test('evaluates the alert rules of this repository', async () => {
    await eventually(async () => {
      const response = await fetch(`http://127.0.0.1:${ui}/api/v1/rules`)
      const { data } = (await response.json()) as { data: { groups: { rules: { health: string; lastError?: string }[] }[] } }
      const all = data.groups.flatMap((group) => group.rules)
      expect(all.length).toBeGreaterThan(20)
      expect(all.filter(({ health }) => health !== 'ok')).toEqual([])
    })
  }, 120_000)
})

test.skipIf(!promtool)('promtool objects to nothing but the names that the node exporter has too', async () => {
  const it = await machine()
  fill(it.store)
  const { output } = judged(['check', 'metrics'], exposition(collect(it)))
  it.runtime.stop()
  const complaints = output.split('\n').filter((line) => line !== '' && !/^node_memory_\w+ metric names should be written in/.test(line))
  expect(complaints).toEqual([])
})

test.skipIf(!promtool)('promtool accepts the alert rules, and each of their cases', () => {
  expect(judged(['check', 'rules', 'alerts.yaml'])).toMatchObject({ code: 0 })
  expect(judged(['test', 'rules', 'alerts.test.yaml'])).toMatchObject({ code: 0 })
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))
