import { expect, test } from 'bun:test'
import { makeClock } from '../../../../src/cosi/clock.ts'
import type { KubeClient, KubeKind } from '../../../../src/kube/client.ts'
import { KubeError } from '../../../../src/kube/errors.ts'
import type { KubeObject } from '../../../../src/kube/object.ts'
import { apiService, apiSlices, keepEndpoints } from '../../../../src/os/k8s/api-access/endpoints.ts'

test('there is a slice for each family, with every control plane', () => {
  const [v4, v6] = apiSlices(['10.0.0.2', 'fd00::2', '10.0.0.3'])
  expect(v4).toMatchObject({
    metadata: { name: 'talos-ipv4', namespace: 'default' },
    addressType: 'IPv4',
    ports: [{ name: 'apid', port: 50000, protocol: 'TCP' }],
    endpoints: [
      { addresses: ['10.0.0.2'], conditions: { ready: true, serving: true, terminating: false } },
      { addresses: ['10.0.0.3'], conditions: { ready: true, serving: true, terminating: false } },
    ],
  })
  expect(v4?.metadata.labels).toEqual({ 'kubernetes.io/service-name': 'talos', provider: 'talos.dev', component: 'apid' })
  expect(v6).toMatchObject({ metadata: { name: 'talos-ipv6' }, addressType: 'IPv6', endpoints: [{ addresses: ['fd00::2'] }] })
})

test('the service leads nowhere by itself', () => {
  expect(apiService().spec).toEqual({ ports: [{ name: 'apid', port: 50000, protocol: 'TCP', targetPort: 50000 }] })
})

/** Runs until so many waits; lists the calls of each pass. */
async function passes(count: number, fails: (call: string, pass: number) => KubeError | undefined) {
  const calls: string[][] = [[]]
  const delays: number[] = []
  const reports: unknown[] = []
  const end = new AbortController()
  const call = async (what: string) => {
    calls.at(-1)?.push(what)
    const failure = fails(what, calls.length)
    if (failure) throw failure
  }
  const client = {
    get: ({ kind }: KubeKind, name: string) => call(`get ${kind} ${name}`),
    create: ({ kind }: KubeKind) => call(`create ${kind}`),
    apply: ({ kind }: KubeKind, { metadata }: KubeObject) => call(`apply ${kind} ${metadata.name}`),
    delete: ({ kind }: KubeKind, name: string) => call(`delete ${kind} ${name}`),
  } as unknown as KubeClient
  const clock = makeClock({
    async sleep(ms) {
      delays.push(ms)
      if (calls.length === count) end.abort(new Error('enough'))
      else calls.push([])
    },
  })
  await keepEndpoints(client, ['10.0.0.2'], { clock, report: (error) => reports.push(error) }, end.signal)
  return { calls, delays, reports }
}

const missing = new KubeError(404, 'NotFound', 'not found')

test('what is missing is made, the empty family and what earlier releases kept are removed', async () => {
  const { calls, delays, reports } = await passes(2, (what, pass) =>
    what.startsWith('delete') || (pass === 1 && what.startsWith('get')) ? missing : undefined,
  )
  const slices = ['apply EndpointSlice talos-ipv4', 'delete EndpointSlice talos-ipv6']
  expect(calls).toEqual([
    ['delete Endpoints talos', 'get Service talos', 'create Service', ...slices],
    ['get Service talos', ...slices],
  ])
  expect(delays).toEqual([60_000, 60_000])
  expect(reports).toEqual([undefined, undefined])
})

test('a failure of the API server is reported and tried again soon', async () => {
  const down = new KubeError(503, 'Unavailable', 'no leader')
  const { calls, delays, reports } = await passes(2, (what, pass) => (pass === 1 && what.startsWith('get') ? down : undefined))
  expect(calls[1]).toContain('apply EndpointSlice talos-ipv4')
  expect(delays).toEqual([2_000, 60_000])
  expect(reports).toEqual([down, undefined])
})
