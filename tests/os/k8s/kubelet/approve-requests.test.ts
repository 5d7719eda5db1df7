import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { kubeClient } from '../../../../src/kube/client.ts'
import type { KubeObject } from '../../../../src/kube/object.ts'
import { approveRequests } from '../../../../src/os/k8s/kubelet/approve-requests.ts'
import { watchNode } from '../../../../src/os/k8s/node/watch.ts'

/** An API server with one request, which refuses as often as configured. */
const cluster = { nodeFailures: 0, nodeLists: 0, approvals: [] as unknown[], decided: false }
let server: ReturnType<typeof Bun.serve>
const request = () => ({ metadata: { name: 'csr-1' }, spec: {}, status: cluster.decided ? { conditions: [{ type: 'Denied' }] } : {} })

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(incoming) {
      const { pathname, searchParams } = new URL(incoming.url)
      if (pathname.endsWith('/nodes') && searchParams.has('watch')) return new Response('')
      if (pathname.endsWith('/nodes')) {
        cluster.nodeLists++
        if (cluster.nodeFailures-- > 0) return new Response('etcd has no leader', { status: 503 })
        return Response.json({ metadata: { resourceVersion: '1' }, items: [{ metadata: { name: 'n1' } }] })
      }
      if (pathname.endsWith('/approval')) {
        cluster.approvals.push(await incoming.json())
        return Response.json({})
      }
      if (searchParams.has('watch')) return new Response(new ReadableStream({ start() {} }))
      return Response.json({ metadata: { resourceVersion: '1' }, items: [request()] })
    },
  })
})
afterAll(() => server.stop(true))
beforeEach(() => Object.assign(cluster, { nodeFailures: 0, nodeLists: 0, approvals: [], decided: false }))

/** Approves until the given event, and gives the reasons that were reported on the way. */
async function approving(problem: (nodes: readonly KubeObject[]) => string | undefined, enough: () => boolean = () => false) {
  const end = new AbortController()
  const reasons: string[] = []
  const client = kubeClient({ server: `http://127.0.0.1:${server.port}`, ca: '' })
  const approval = {
    signer: 'example.org/test',
    message: 'known',
    delay: 5,
    problem: (_: KubeObject, nodes: readonly KubeObject[]) => {
      if (enough()) end.abort(new Error('enough'))
      return problem(nodes)
    },
    approved: () => end.abort(new Error('approved')),
    held: (_: KubeObject, reason: string) => reasons.push(reason),
  }
  await approveRequests(client, approval, AbortSignal.any([end.signal, AbortSignal.timeout(5_000)]))
  client.close()
  return reasons
}

test('an API server that cannot return the node refuses nothing: the request is evaluated again', async () => {
  cluster.nodeFailures = 3
  expect(await approving((nodes) => (nodes.length === 1 ? undefined : 'no node'))).toEqual([])
  expect(cluster.approvals).toMatchObject([
    { metadata: { name: 'csr-1' }, status: { conditions: [{ type: 'Approved', message: 'known' }] } },
  ])
  expect(cluster.nodeLists).toBe(4)
})

test('what the cluster does not know yet is granted once it does; each reason is reported once', async () => {
  const answers = ['not known', 'not known', 'not known', 'another', undefined]
  expect(await approving(() => answers.shift())).toEqual(['not known', 'another'])
  expect(cluster.approvals).toHaveLength(1)
})

test('nothing is approved that stays without attribution', async () => {
  let looks = 0
  const reasons = await approving(
    () => 'no',
    () => ++looks > 4,
  )
  expect(reasons).toEqual(['no'])
  expect(cluster.approvals).toEqual([])
})

test('a server that ends each watch at once gets list requests only with a delay', async () => {
  const end = new AbortController()
  const client = kubeClient({ server: `http://127.0.0.1:${server.port}`, ca: '' })
  let seen = 0
  const changed = () => {
    // The second list comes only after a pause: the event loop gets to a far timer first.
    if (++seen === 1) setTimeout(() => end.abort(new Error('enough')), 200)
  }
  await watchNode(client, 'n1', changed, end.signal).catch(() => {})
  client.close()
  expect(seen).toBe(1)
})
