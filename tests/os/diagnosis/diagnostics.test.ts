import { describe, expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { createLogger, formatEntry, silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { addressOverlap, kubeletRequest } from '../../../src/os/diagnosis/checks.ts'
import { publishDiagnostics } from '../../../src/os/diagnosis/controllers/diagnostics.ts'
import { logDiagnostics } from '../../../src/os/diagnosis/controllers/diagnostics-log.ts'
import { Nodename } from '../../../src/os/k8s/resources/nodename.ts'
import { NodeAddress } from '../../../src/os/network/resources/node-address.ts'
import { Diagnostic } from '../../../src/os/runtime/resources/diagnostic.ts'
import { Service } from '../../../src/os/runtime/resources/service.ts'
import { fakeTime } from '../../support/fake-time.ts'

const networks = { pods: ['10.244.0.0/16'], services: ['10.96.0.0/12'] }

describe('addresses of the node', () => {
  test.each([
    [['10.244.3.4/24'], true],
    [['10.244.3.4/24', '10.96.1.1/32'], true],
    [['10.244.3.4/24', '192.168.1.2/24'], false],
    [[], false],
  ])('%p overlap with the networks of pods and services: %p', (addresses, overlaps) => {
    const found = addressOverlap({ addresses, ...networks })
    expect(found !== undefined).toBe(overlaps)
    if (found)
      expect(found.details).toEqual([
        `addresses of the node: ${addresses.join(', ')}`,
        'networks of pods: 10.244.0.0/16',
        'networks of services: 10.96.0.0/12',
      ])
  })
})

describe("the kubelet's request for a serving certificate", () => {
  const request = (name: string, spec: object, status: object = {}) => ({ metadata: { name }, spec, status })
  const serving = { signerName: 'kubernetes.io/kubelet-serving', username: 'system:node:node-1' }

  /** A kubelet that answers a handshake with these bytes, and an API server with these requests. */
  async function find(answer: number[], items: object[]) {
    const kubelet = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(Buffer.from(answer)))
    })
    await new Promise<void>((resolve) => kubelet.listen(0, '127.0.0.1', resolve))
    const list = { kind: 'CertificateSigningRequestList', apiVersion: 'certificates.k8s.io/v1', metadata: { resourceVersion: '1' }, items }
    using api = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json(list) })
    try {
      const { port } = kubelet.address() as { port: number }
      const access = { server: `http://127.0.0.1:${api.port}` }
      return await kubeletRequest('node-1', access as never, AbortSignal.timeout(5000), port)
    } finally {
      kubelet.close()
    }
  }
  const internalError = [21, 3, 3, 0, 2, 2, 80]

  test('is named while nobody has decided about it', async () => {
    const found = await find(internalError, [
      request('csr-1', serving),
      request('csr-2', serving, { conditions: [{ type: 'Approved' }] }),
      request('csr-3', { ...serving, username: 'system:node:node-2' }),
      request('csr-4', { ...serving, signerName: 'kubernetes.io/kube-apiserver-client-kubelet' }),
    ])
    expect(found?.message).toStartWith('the kubelet waits for its serving certificate')
    expect(found?.details[1]).toBe('requests: csr-1')
  })

  test('is no cause without an open request, or when the handshake fails otherwise', async () => {
    expect(await find(internalError, [])).toBeUndefined()
    expect(await find([21, 3, 3, 0, 2, 2, 40], [request('csr-1', serving)])).toBeUndefined()
  })
})

test('what is wrong is published after 30 seconds and goes when it is right again; a check that fails finds nothing', async () => {
  using time = fakeTime()
  const store = new Store()
  const runtime = new Runtime(store, { log: silent, clock: time.clock })
  let answer: Awaited<ReturnType<typeof kubeletRequest>> | Error
  const request = async () => {
    if (answer instanceof Error) throw answer
    return answer
  }
  runtime.register(publishDiagnostics({ access: () => ({}) as never, request }))
  runtime.start()
  store.put(MachineConfig, 'v1alpha1', 'cluster: { network: { podSubnets: [10.244.0.0/16] } }\n')
  store.put(NodeAddress, 'routed', { addresses: ['10.244.3.4/24'], sortAlgorithm: 'v1' })
  const ids = () => store.list(Diagnostic).map(({ metadata }) => metadata.id)
  await time.pass(runtime, 29_000)
  expect(ids()).toEqual([])
  await time.pass(runtime, 2_000)
  expect(ids()).toEqual(['address-overlap'])
  store.put(NodeAddress, 'routed', { addresses: ['192.168.3.4/24'], sortAlgorithm: 'v1' })
  await time.pass(runtime, 1_000)
  expect(ids()).toEqual([])

  answer = { message: 'waits', details: [] }
  store.put(Nodename, 'nodename', { nodename: 'node-1', hostnameVersion: '1', skipNodeRegistration: false })
  await time.pass(runtime, 90_000)
  expect(ids()).toEqual([]) // the kubelet does not run
  store.put(Service, 'kubelet', { running: true, healthy: true, unknown: false })
  await time.pass(runtime, 40_000)
  expect(ids()).toEqual(['kubelet-csr'])
  answer = new Error('the API server does not answer')
  await time.pass(runtime, 61_000)
  expect(ids()).toEqual([])
  runtime.stop()
})

test('diagnostics are logged when they come, every five minutes, and when they go', async () => {
  using time = fakeTime()
  const lines: string[] = []
  const store = new Store()
  const log = createLogger((entry) => lines.push(formatEntry(entry).replace(/ controller=\S+/, '')))
  const runtime = new Runtime(store, { log, clock: time.clock })
  runtime.register(logDiagnostics())
  runtime.start()
  const seen = () => lines.splice(0).filter((line) => line.includes('diagnostic'))
  store.put(Diagnostic, 'etcd-full', { message: 'etcd is full', details: ['space: 2 GiB'] })
  await time.pass(runtime, 2_000)
  expect(seen()).toEqual(['warn: new diagnostic id=etcd-full message="etcd is full" details=["space: 2 GiB"]'])
  await time.pass(runtime, 301_000)
  expect(seen()).toEqual(['warn: diagnostic still active id=etcd-full message="etcd is full" details=["space: 2 GiB"]'])
  store.destroy(Diagnostic, 'etcd-full')
  await time.pass(runtime, 2_000)
  expect(seen()).toEqual(['diagnostic resolved id=etcd-full message="etcd is full"'])
  runtime.stop()
})
