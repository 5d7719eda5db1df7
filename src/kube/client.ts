/**
 * Kubernetes over HTTPS with a client certificate. Discovery of the server maps kinds to paths. Every call has a deadline,
 * and a watch ends when nothing has arrived for too long.
 */
import { KubeError } from './errors.ts'
import type { KubeObject } from './object.ts'
import { responseBytes } from './response-bytes.ts'
import { type CallOptions, type KubeAccess, KubeTransport, type RequestBody } from './transport.ts'
import { type WatchEvent, watchEvents } from './watch-events.ts'

/** A kind as discovered from the API server. */
export interface KubeKind {
  apiVersion: string
  kind: string
  plural: string
  namespaced: boolean
}

/** Selects objects of a kind. */
export interface ListQuery {
  namespace?: string | undefined
  labelSelector?: string
  fieldSelector?: string
  /** The most objects in a list; the others are left out. */
  limit?: number
}

/** A client of one API server. */
export interface KubeClient {
  readonly server: string
  /** Sends any request and returns the parsed JSON of the response. */
  request<T>(method: string, path: string, options?: CallOptions & RequestBody): Promise<T>
  kind(apiVersion: string, kind: string, options?: CallOptions): Promise<KubeKind>
  get(kind: KubeKind, name: string, namespace?: string, options?: CallOptions): Promise<KubeObject>
  list(kind: KubeKind, query?: ListQuery, options?: CallOptions): Promise<{ items: KubeObject[]; resourceVersion: string }>
  /** Changes after `resourceVersion`, until the server or the signal ends the watch. */
  watch(kind: KubeKind, query: ListQuery & { resourceVersion: string }, options?: CallOptions): AsyncGenerator<WatchEvent, void>
  create(kind: KubeKind, object: KubeObject, options?: CallOptions): Promise<KubeObject>
  /** Server-side apply. */
  apply(kind: KubeKind, object: KubeObject, apply: ApplyOptions, options?: CallOptions): Promise<KubeObject>
  patch(kind: KubeKind, name: string, namespace: string | undefined, patch: MergePatch, options?: CallOptions): Promise<KubeObject>
  delete(kind: KubeKind, name: string, namespace?: string, options?: CallOptions): Promise<void>
  /** The log of a container as bytes, until it ends, or the signal or the timeout ends it. */
  log(pod: string, namespace: string, query: LogQuery, options: CallOptions & { timeout: number }): AsyncGenerator<Uint8Array, void>
  close(): void
}

/** Which log of a pod. */
export interface LogQuery {
  container: string
  follow?: boolean
  /** Only what was written in the last so many seconds. */
  sinceSeconds?: number
}

/** Options of server-side apply. */
export interface ApplyOptions {
  fieldManager: string
  force?: boolean
  dryRun?: boolean
}

/** A patch and its type. */
export interface MergePatch {
  type: 'application/merge-patch+json' | 'application/strategic-merge-patch+json'
  body: unknown
}

/** Kinds that exist in every cluster: their paths need no discovery. */
export const core = {
  node: { apiVersion: 'v1', kind: 'Node', plural: 'nodes', namespaced: false },
  pod: { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true },
  configMap: { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true },
  secret: { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true },
  service: { apiVersion: 'v1', kind: 'Service', plural: 'services', namespaced: true },
  event: { apiVersion: 'v1', kind: 'Event', plural: 'events', namespaced: true },
  endpoints: { apiVersion: 'v1', kind: 'Endpoints', plural: 'endpoints', namespaced: true },
  namespace: { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false },
  endpointSlice: { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', plural: 'endpointslices', namespaced: true },
  daemonSet: { apiVersion: 'apps/v1', kind: 'DaemonSet', plural: 'daemonsets', namespaced: true },
  deployment: { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments', namespaced: true },
  certificateSigningRequest: {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    plural: 'certificatesigningrequests',
    namespaced: false,
  },
} as const satisfies Record<string, KubeKind>

/** The server is requested to end a watch after this many seconds, so that a dead connection is detected. */
const watchSeconds = 300

const rootOf = (apiVersion: string): string => (apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`)

/** The path of a kind's collection, or of one object in it. */
export function pathOf({ apiVersion, plural, namespaced }: KubeKind, namespace?: string, name?: string): string {
  const scope = namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : ''
  return `${rootOf(apiVersion)}${scope}/${plural}${name ? `/${encodeURIComponent(name)}` : ''}`
}

/** Creates a client; it sends nothing before the first call. */
export function kubeClient(access: KubeAccess): KubeClient {
  const transport = new KubeTransport(access)
  const request: KubeClient['request'] = (method, path, options) => transport.request(method, path, options)
  const kinds = new Map<string, KubeKind>()
  return {
    server: transport.server,
    request,
    async kind(apiVersion, kind, options) {
      const key = `${apiVersion}/${kind}`
      const known = kinds.get(key) ?? Object.values<KubeKind>(core).find((one) => one.apiVersion === apiVersion && one.kind === kind)
      if (known) return known
      for (const one of await servedKinds(request, apiVersion, options)) kinds.set(`${apiVersion}/${one.kind}`, one)
      const found = kinds.get(key)
      if (!found) throw new KubeError(404, 'NotFound', `kind "${kind}" is not served in "${apiVersion}"`)
      return found
    },
    get: (kind, name, namespace, options) => request('GET', pathOf(kind, namespace, name), options),
    async list(kind, { namespace, ...selectors } = {}, options) {
      const path = pathOf(kind, namespace) + query(selectors)
      const { items, metadata } = await request<{ items: KubeObject[] | null; metadata: { resourceVersion: string } }>('GET', path, options)
      // The items of a list come without apiVersion and kind.
      const { apiVersion, kind: name } = kind
      return { items: (items ?? []).map((item) => ({ ...item, apiVersion, kind: name })), resourceVersion: metadata.resourceVersion }
    },
    async *watch(kind, { namespace, ...selectors }, options = {}) {
      const parameters = { ...selectors, watch: true, allowWatchBookmarks: true, timeoutSeconds: watchSeconds }
      const path = pathOf(kind, namespace) + query(parameters)
      yield* watchEvents(transport, path, { ...options, timeout: (watchSeconds + 30) * 1000 })
    },
    create: (kind, object, options) =>
      request('POST', pathOf(kind, object.metadata.namespace), { ...options, body: JSON.stringify(object) }),
    apply: (kind, object, { fieldManager, force = true, dryRun = false }, options) =>
      request(
        'PATCH',
        pathOf(kind, object.metadata.namespace, object.metadata.name) + query({ fieldManager, force, dryRun: dryRun && 'All' }),
        {
          ...options,
          contentType: 'application/apply-patch+yaml',
          body: JSON.stringify(object),
        },
      ),
    patch: (kind, name, namespace, { type, body }, options) =>
      request('PATCH', pathOf(kind, namespace, name), { ...options, contentType: type, body: JSON.stringify(body) }),
    async delete(kind, name, namespace, options) {
      await request('DELETE', pathOf(kind, namespace, name), options)
    },
    log: (pod, namespace, selection, options) =>
      responseBytes(transport, `${pathOf(core.pod, namespace, pod)}/log${query({ ...selection })}`, options),
    close: () => transport.close(),
  }
}

/** The kinds of a version as the server lists them. */
async function servedKinds(request: KubeClient['request'], apiVersion: string, options?: CallOptions): Promise<KubeKind[]> {
  interface Served {
    name: string
    kind: string
    namespaced: boolean
  }
  const { resources = [] } = await request<{ resources?: Served[] }>('GET', rootOf(apiVersion), options)
  // A name with a slash is a subresource.
  return resources.flatMap(({ name, kind, namespaced }) => (name.includes('/') ? [] : [{ apiVersion, kind, plural: name, namespaced }]))
}

function query(values: Record<string, string | number | boolean | undefined>): string {
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries(values)) if (value !== undefined && value !== false) search.set(key, String(value))
  const text = search.toString()
  return text ? `?${text}` : ''
}
