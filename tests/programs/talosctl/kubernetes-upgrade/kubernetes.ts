/** An API server in memory: discovery, lists, server-side apply with dry runs, patches and removal of objects. */
import { isObject } from '../../../../src/document/is-object.ts'
import { type KubeClient, type KubeKind, kubeClient, pathOf } from '../../../../src/kube/client.ts'
import type { KubeObject } from '../../../../src/kube/object.ts'

const kinds: readonly KubeKind[] = [
  { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false },
  { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true },
  { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true },
  { apiVersion: 'v1', kind: 'Service', plural: 'services', namespaced: true },
  { apiVersion: 'v1', kind: 'Node', plural: 'nodes', namespaced: false },
  { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true },
  { apiVersion: 'apps/v1', kind: 'DaemonSet', plural: 'daemonsets', namespaced: true },
  { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments', namespaced: true },
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', plural: 'clusterroles', namespaced: false },
]

/** What a request did: method, path, and `dry` for a dry run. */
type Seen = string

/** The server; close it at the end of the test. */
export function kubernetesInMemory() {
  const objects = new Map<string, KubeObject>()
  const seen: Seen[] = []
  let version = 0
  /** Rejects what a test forbids; returns the status and the message. */
  const state = { reject: (_method: string, _path: string): [number, string] | undefined => undefined }
  const failure = (status: number, message: string) => Response.json({ kind: 'Status', reason: 'Failed', message }, { status })

  async function handle(request: Request): Promise<[number, unknown]> {
    const { pathname, searchParams } = new URL(request.url)
    const dry = searchParams.get('dryRun') === 'All'
    if (request.method !== 'GET') seen.push(`${request.method} ${pathname}${dry ? ' dry' : ''}`)
    const rejected = state.reject(request.method, pathname)
    if (rejected) return [rejected[0], rejected[1]]
    if (request.method === 'GET') return answer(pathname, searchParams)
    const before = objects.get(pathname)
    if (request.method === 'DELETE') {
      if (!before) return [404, 'not there']
      objects.delete(pathname)
      return [200, {}]
    }
    const body = (await request.json()) as KubeObject
    const next = merged(before ?? { metadata: { uid: String(++version), generation: 1 } }, body) as unknown as KubeObject
    if (before && JSON.stringify(before) !== JSON.stringify(next)) next.metadata.resourceVersion = String(++version)
    if (!dry) objects.set(pathname, next)
    return [200, next]
  }

  function answer(pathname: string, query: URLSearchParams): [number, unknown] {
    const found = objects.get(pathname)
    if (found) return [200, found]
    const group = /^\/apis\/([^/]+)$/.exec(pathname)?.[1]
    const served = kinds.filter(({ apiVersion }) => pathname === (apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`))
    if (served.length > 0) return [200, { resources: served.map(({ plural, ...kind }) => ({ ...kind, name: plural })) }]
    const grouped = kinds.find(({ apiVersion }) => group !== undefined && apiVersion.startsWith(`${group}/`))
    if (grouped) return [200, { preferredVersion: { groupVersion: grouped.apiVersion } }]
    const listed = kinds.some((kind) => pathname === pathOf(kind) || new RegExp(`/namespaces/[^/]+/${kind.plural}$`).test(pathname))
    if (!listed) return [404, 'not there']
    const [label, value] = query.get('labelSelector')?.split('=') ?? []
    const items = [...objects].filter(([path]) => path.startsWith(`${pathname}/`)).map(([, object]) => object)
    return [200, { metadata: {}, items: items.filter(({ metadata }) => !label || metadata.labels?.[label] === value) }]
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request): Promise<Response> {
      const [status, body] = await handle(request)
      return status === 200 ? Response.json(body) : failure(status, String(body))
    },
  })
  const url = `http://127.0.0.1:${server.port}`
  const client: KubeClient = kubeClient({ server: url, ca: '' })
  const pathTo = ({ apiVersion, kind, metadata }: KubeObject) => {
    const known = kinds.find((one) => one.apiVersion === apiVersion && one.kind === kind)
    if (!known) throw new Error(`the server has no ${kind}`)
    return pathOf(known, metadata.namespace, metadata.name)
  }
  return {
    url,
    client,
    objects,
    seen,
    state,
    put: (object: KubeObject) => void objects.set(pathTo(object), object),
    get: (path: string) => objects.get(path),
    async close() {
      client.close()
      await server.stop(true)
    },
  }
}

/** The fields of one object in another; null removes a field. */
function merged(before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return after
  const result: Record<string, unknown> = { ...before }
  for (const [key, value] of Object.entries(after)) {
    if (value === null) delete result[key]
    else if (value !== undefined) result[key] = key === 'data' ? value : merged(before[key], value)
  }
  return result
}
