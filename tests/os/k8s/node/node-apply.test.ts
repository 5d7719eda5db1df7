import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { createLogger, formatEntry } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { formatKubeconfig } from '../../../../src/kube/kubeconfig.ts'
import { applyNode } from '../../../../src/os/k8s/controllers/node/node-apply.ts'
import { NodeLabelSpec, NodeStatus, NodeTaintSpec } from '../../../../src/os/k8s/resources/node.ts'
import { Nodename } from '../../../../src/os/k8s/resources/nodename.ts'

let server: ReturnType<typeof Bun.serve>
let node: Record<string, unknown> = {}
const patches: { metadata?: object; spec?: object }[] = []
const base64 = (text: string) => Buffer.from(text).toString('base64')

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      if (request.method === 'PATCH') patches.push((await request.json()) as (typeof patches)[number])
      return Response.json(node)
    },
  })
})
afterAll(() => server.stop(true))
beforeEach(() => void patches.splice(0))

/** What a worker with these taints in its configuration logs, when its Node has those of the cluster. */
async function worker(desired: { key: string; value: string; effect: string }[], present: object[]) {
  node = { metadata: { name: 'w1', resourceVersion: '1', annotations: {} }, spec: { taints: present } }
  const kubeconfig = formatKubeconfig({
    clusters: new Map([['local', { server: `http://127.0.0.1:${server.port}`, 'certificate-authority-data': base64('ca') }]]),
    ...{ users: new Map(), contexts: new Map(), currentContext: '', rest: {} },
  })
  const pem = '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n'
  const files = { readTextIfThere: (path: string) => (path.endsWith('kubeconfig-kubelet') ? kubeconfig : pem) }
  const lines: string[] = []
  const store = new Store()
  const runtime = new Runtime(store, { log: createLogger((entry) => lines.push(formatEntry(entry))) })
  runtime.register(applyNode({ files }))
  store.put(Nodename, 'nodename', { nodename: 'w1', hostnameVersion: '1', skipNodeRegistration: false })
  store.put(NodeStatus, 'w1', { nodename: 'w1', nodeReady: true, unschedulable: false, labels: {}, annotations: {}, podCIDRs: [] })
  for (const taint of desired) store.put(NodeTaintSpec, taint.key, taint)
  runtime.start()
  await runtime.settled()
  store.put(NodeLabelSpec, 'rack', { key: 'rack', value: 'r3' })
  await runtime.settled()
  runtime.stop()
  return lines.filter((line) => line.includes('may not'))
}

const gpu = { key: 'gpu', value: 'yes', effect: 'NoSchedule' }

test('a worker that has registered with its taints records them as its own', async () => {
  expect(await worker([gpu], [gpu])).toEqual([])
  expect(patches[0]).toMatchObject({ metadata: { annotations: { 'talos.dev/owned-taints': '["gpu"]' } } })
  expect(patches.filter(({ spec }) => spec)).toEqual([])
})

test('a worker does not try to change its taints, which the cluster would refuse, reports it once, and applies its labels', async () => {
  expect(await worker([gpu], [])).toEqual([expect.stringMatching(/a worker may not change its taints.* taints=.?gpu=yes:NoSchedule/)])
  expect(patches.filter(({ spec }) => spec)).toEqual([])
  expect(patches.at(-1)).toMatchObject({ metadata: { labels: { rack: 'r3' } } })
})
