/** What `reboot --drain` and `upgrade` do to Kubernetes nodes, over an API server that answers as one with these nodes and pods. */
import { afterEach, expect, test } from 'bun:test'
import { drainNodes } from '../../../../src/programs/talosctl/action/drain.ts'
import type { Cluster } from '../../../../src/programs/talosctl/cluster.ts'
import { textIo } from '../peer.ts'

const servers: ReturnType<typeof Bun.serve>[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(true)
})

interface Node {
  cordoned: boolean
  /** Its pods; a budget keeps those whose names begin with `kept`. */
  pods: string[]
}

/** A cluster whose machines are named as its Kubernetes nodes are. */
function cluster(nodes: Record<string, Node>): Cluster {
  const answer = async (request: Request): Promise<Response> => {
    const { pathname, searchParams } = new URL(request.url)
    const name = pathname.split('/').at(-1) ?? ''
    if (pathname.endsWith('/nodes'))
      return Response.json({ metadata: {}, items: Object.keys(nodes).map((each) => ({ metadata: { name: each } })) })
    if (pathname.includes('/nodes/')) {
      const node = nodes[name]!
      if (request.method === 'PATCH')
        node.cordoned = ((await request.json()) as { spec: { unschedulable: boolean | null } }).spec.unschedulable === true
      return Response.json({ metadata: { name }, spec: { unschedulable: node.cordoned } })
    }
    if (pathname.endsWith('/eviction')) {
      const pod = pathname.split('/').at(-2) ?? ''
      if (pod.startsWith('kept')) {
        const causes = [{ reason: 'DisruptionBudget', message: 'The disruption budget always needs 1 healthy pods and has 1 currently' }]
        return Response.json({ kind: 'Status', reason: 'TooManyRequests', message: 'no', details: { causes } }, { status: 429 })
      }
      for (const node of Object.values(nodes)) node.pods = node.pods.filter((each) => each !== pod)
      return Response.json({ kind: 'Status', status: 'Success' })
    }
    const [, node = ''] = /spec\.nodeName=(.*)/.exec(searchParams.get('fieldSelector') ?? '') ?? []
    const items = (nodes[node]?.pods ?? []).map((pod) => ({
      metadata: { name: pod, namespace: 'default', uid: pod },
      status: { phase: 'Running' },
    }))
    return Response.json({ metadata: {}, items })
  }
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  servers.push(server)
  const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:${server.port}", certificate-authority-data: Y2E=}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
  return {
    unary: async () => ({}),
    async *stream(method: string) {
      if (method.endsWith('/Kubeconfig')) yield { bytes: Buffer.from(kubeconfig) }
    },
  } as unknown as Cluster
}

const quickly = { timeout: 50, progress: 'plain' as const }

test('nodes are cordoned while they are down, and only those that were not before are in use afterwards', async () => {
  const nodes = { a: { cordoned: false, pods: ['web'] }, b: { cordoned: true, pods: ['app'] } }
  const readmit = await drainNodes(textIo(), cluster(nodes), ['a', 'b'], { ...quickly, timeout: 5000 })
  expect(nodes).toEqual({ a: { cordoned: true, pods: [] }, b: { cordoned: true, pods: [] } })
  await readmit()
  expect([nodes.a.cordoned, nodes.b.cordoned]).toEqual([false, true])
})

test('a budget that keeps a pod ends the drain with both named, and every node is as it was before', async () => {
  const nodes = { a: { cordoned: false, pods: ['kept-1'] }, b: { cordoned: true, pods: [] } }
  await expect(drainNodes(textIo(), cluster(nodes), ['a', 'b'], quickly)).rejects.toThrow(
    /drain node "a": not done within .*default\/kept-1: The disruption budget always needs 1 healthy pods/,
  )
  expect([nodes.a.cordoned, nodes.b.cordoned]).toEqual([false, true])
})

test('with force a pod that is kept does not keep its node, which is in use again afterwards', async () => {
  const nodes = { a: { cordoned: false, pods: ['kept-1'] } }
  const io = textIo()
  const readmit = await drainNodes(io, cluster(nodes), ['a'], { ...quickly, force: true })
  expect(io.written.err).toContain('The disruption budget always needs 1 healthy pods')
  expect(nodes.a).toEqual({ cordoned: true, pods: ['kept-1'] })
  await readmit()
  expect(nodes.a.cordoned).toBe(false)
})

test('a node that is gone from the cluster afterwards is no error', async () => {
  const nodes: Record<string, Node> = { a: { cordoned: false, pods: [] } }
  const readmit = await drainNodes(textIo(), cluster(nodes), ['a'], quickly)
  delete nodes.a
  await readmit()
})
