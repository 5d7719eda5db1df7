import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import type { Machine } from '../../../src/os/area.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { ApiCertificate } from '../../../src/os/secrets/resources/api-certificate.ts'
import { configMetricsEndpoint, startMetrics } from '../../../src/os/telemetry/controllers/metrics-endpoint.ts'
import { TelemetryConfig } from '../../../src/os/telemetry/documents/telemetry.ts'
import { MetricsEndpoint } from '../../../src/os/telemetry/resources/metrics-endpoint.ts'
import { metricsdService } from '../../../src/os/telemetry/services/metricsd.ts'
import { newCA, newCertificate } from '../../../src/pki/certificate.ts'

const token = '0123456789abcdef0123'
const config = (more: string) => `apiVersion: v1alpha1\nkind: TelemetryConfig\nprometheus:\n  listen: 0.0.0.0:9100\n${more}`

test('metricsd runs while an endpoint is declared, and is restarted when it has changed; only a digest of the token is kept', async () => {
  const store = new Store()
  const done: string[] = []
  const supervisor = {
    load: ({ id }: { id: string }) => done.push(`load ${id}`),
    start: (id: string) => done.push(`start ${id}`),
    restart: async (id: string) => void done.push(`restart ${id}`),
    unload: async (id: string) => void done.push(`unload ${id}`),
  }
  const service = (id: string) => ({ id, dependsOn: [], restart: 'never', runner: () => Promise.reject(new Error()) })
  const runtime = new Runtime(store, { log: silent })
  runtime.register(configMetricsEndpoint, startMetrics({ supervisor, service } as unknown as Machine))
  runtime.start()
  await runtime.settled()
  expect(done).toEqual([])
  store.put(MachineConfig, 'v1alpha1', config(`  bearerToken: ${token}\n`))
  await runtime.settled()
  const { spec } = store.get(MetricsEndpoint, 'metrics')!
  const tokenDigest = createHash('sha256').update(token).digest('hex')
  expect(spec).toEqual({ listen: '0.0.0.0:9100', clientCA: '', tokenDigest })
  expect(JSON.stringify(store.all().filter(({ metadata }) => metadata.owner !== ''))).not.toContain(token)
  expect(done.splice(0)).toEqual(['load metricsd', 'start metricsd'])
  store.put(MachineConfig, 'v1alpha1', config(`  bearerToken: ${token}1\n`))
  await runtime.settled()
  expect(done.splice(0)).toEqual(['restart metricsd'])
  store.put(MachineConfig, 'v1alpha1', 'apiVersion: v1alpha1\nkind: TelemetryConfig\n')
  await runtime.settled()
  expect(done.splice(0)).toEqual(['unload metricsd'])
  expect(store.get(MetricsEndpoint, 'metrics')).toBeUndefined()
  runtime.stop()
})

test('the declaration is written for metricsd alone, and waits for a certificate', async () => {
  const store = new Store()
  const written: unknown[] = []
  const files = { mkdirAll() {}, writeAtomic: async (...values: unknown[]) => void written.push(values) }
  const definition = metricsdService({ kernel: { files }, store } as unknown as Machine)
  expect(definition.wait?.(store)).toEqual(['api certificates', 'an endpoint to be declared'])
  store.put(ApiCertificate, 'api', { server: { crt: 'a', key: 'b' }, skipVerifyingClientCert: false })
  store.put(MetricsEndpoint, 'metrics', { listen: '[::]:9100', clientCA: '', tokenDigest: 'ab' })
  expect(definition.wait?.(store)).toEqual([])
  await definition.prepare?.({ store } as never)
  expect(written).toEqual([
    ['/system/run/metricsd/endpoint.json', '{"listen":"[::]:9100","clientCA":"","tokenDigest":"ab"}', { mode: 0o400, uid: 52, gid: 52 }],
  ])
})

const authority = newCA({ subject: { organizations: ['monitoring'] } })
const leaf = newCertificate({ ca: authority, subject: { commonName: 'x' }, usage: ['clientAuth'], lifetime: 3600_000 })

test.each([
  [{}, 'an address with a port is required'],
  [{ listen: '0.0.0.0:9100' }, 'nobody would be admitted: set clientCA, bearerToken, or both'],
  [{ listen: '0.0.0.0:50000', bearerToken: token }, 'port 50000 is used by the system: 9100 is usual'],
  [{ listen: '0.0.0.0:9100', bearerToken: 'short' }, 'a token has 16 to 1024 letters, digits'],
  [{ listen: '0.0.0.0:9100', bearerToken: 'with blanks in between' }, 'a token has 16 to 1024 letters, digits'],
  [{ listen: '0.0.0.0:9100', clientCA: leaf.crt }, 'certificates in PEM of authorities are required'],
  [{ listen: '0.0.0.0:9100', clientCA: authority.key }, 'certificates in PEM of authorities are required'],
])('%j is refused', (prometheus, message) => {
  const problems: string[] = []
  const report = { error: (_: unknown, problem: string) => problems.push(problem), warning() {} }
  TelemetryConfig.rules?.({ prometheus }, report as never, 'metal')
  expect(problems.join('\n')).toContain(message)
})

test('several authorities, or a token, or both are accepted', () => {
  const problems: string[] = []
  const report = { error: (_: unknown, problem: string) => problems.push(problem), warning() {} }
  const listen = '[::]:9100'
  for (const prometheus of [
    { listen, clientCA: authority.crt + authority.crt },
    { listen, bearerToken: token },
  ])
    TelemetryConfig.rules?.({ prometheus }, report as never, 'metal')
  TelemetryConfig.rules?.({}, report as never, 'metal')
  expect(problems).toEqual([])
})
