/**
 * Kubernetes over HTTPS with a client certificate. Discovery of the server maps kinds to paths. Every call has a deadline,
 * and a watch ends when nothing has arrived for too long.
 */
import { messageOf } from '../wire/error-message.ts'
import { KubeError } from './errors.ts'
import { lines } from './lines.ts'
import type { KubeObject } from './object.ts'

/** The address of an API server and the client's credentials; keys and certificates are PEM. */
export interface KubeAccess {
  server: string
  ca: string
  cert?: string
  key?: string
  token?: string
}

/** Options of a single call. */
export interface CallOptions {
  signal?: AbortSignal
  /** Timeout of the call in milliseconds. Default: 30 s. */
  timeout?: number
}

/** A kind as discovered from the API server. */
export interface KubeKind {
  apiVersion: string
  kind: string
  plural: string
  namespaced: boolean
}

/** Selects objects of a kind. */
export interface ListQuery {
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
}

/** An event of a watch. */
export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  object: KubeObject
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
  close(): void
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

interface RequestBody {
  body?: string
  contentType?: string
}

/** Kinds that exist in every cluster: their paths need no discovery. */
export const core = {
  node: { apiVersion: 'v1', kind: 'Node', plural: 'nodes', namespaced: false },
  pod: { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true },
  configMap: { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true },
  secret: { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true },
  service: { apiVersion: 'v1', kind: 'Service', plural: 'services', namespaced: true },
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

const defaultTimeout = 30_000
/** The server is requested to end a watch after this many seconds, so that a dead connection is detected. */
const watchSeconds = 300

/** The path of a kind's collection, or of one object in it. */
export function pathOf({ apiVersion, plural, namespaced }: KubeKind, namespace?: string, name?: string): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const scope = namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : ''
  return `${root}${scope}/${plural}${name ? `/${encodeURIComponent(name)}` : ''}`
}

/** Creates a client; it sends nothing before the first call. */
export function kubeClient(access: KubeAccess): KubeClient {
  const server = access.server.replace(/\/+$/, '')
  const tls = { ca: access.ca, ...(access.cert && access.key && { cert: access.cert, key: access.key }) }
  const closing = new AbortController()
  const kinds = new Map<string, KubeKind>()

  const send = async (method: string, path: string, options: CallOptions & RequestBody, deadline: AbortSignal) => {
    const headers: Record<string, string> = { accept: 'application/json' }
    if (options.body !== undefined) headers['content-type'] = options.contentType ?? 'application/json'
    if (access.token) headers.authorization = `Bearer ${access.token}`
    const signal = AbortSignal.any([deadline, closing.signal, ...(options.signal ? [options.signal] : [])])
    const where = `${method} ${server}${path.split('?')[0]}`
    try {
      const response = await fetch(`${server}${path}`, { method, headers, body: options.body, signal, tls, redirect: 'error' })
      return { response, where }
    } catch (error) {
      throw unreachable(where, error, deadline, options.signal)
    }
  }

  const request = async <T>(method: string, path: string, options: CallOptions & RequestBody = {}): Promise<T> => {
    const deadline = AbortSignal.timeout(options.timeout ?? defaultTimeout)
    const { response, where } = await send(method, path, options, deadline)
    let text: string
    try {
      text = await response.text()
    } catch (error) {
      throw unreachable(where, error, deadline, options.signal)
    }
    if (!response.ok) throw refused(response.status, where, text)
    try {
      return JSON.parse(text) as T
    } catch {
      // healthz and similar endpoints answer in plain text
      if (!response.headers.get('content-type')?.includes('json')) return text as T
      throw new KubeError(response.status, 'Malformed', `${where}: the response is not JSON`)
    }
  }

  const query = (values: Record<string, string | number | boolean | undefined>) => {
    const search = new URLSearchParams()
    for (const [key, value] of Object.entries(values)) if (value !== undefined && value !== false) search.set(key, String(value))
    const text = search.toString()
    return text ? `?${text}` : ''
  }

  return {
    server,
    request,
    async kind(apiVersion, kind, options) {
      const key = `${apiVersion}/${kind}`
      const known = kinds.get(key) ?? Object.values<KubeKind>(core).find((one) => one.apiVersion === apiVersion && one.kind === kind)
      if (known) return known
      const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
      const { resources = [] } = await request<{ resources?: { name: string; kind: string; namespaced: boolean }[] }>('GET', root, options)
      for (const one of resources) {
        if (one.name.includes('/')) continue
        kinds.set(`${apiVersion}/${one.kind}`, { apiVersion, kind: one.kind, plural: one.name, namespaced: one.namespaced })
      }
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
      const deadline = AbortSignal.timeout((watchSeconds + 30) * 1000)
      const { response, where } = await send('GET', path, options, deadline)
      if (!response.ok || !response.body) throw refused(response.status, where, await response.text())
      try {
        for await (const line of lines(response.body)) {
          const event = parseEvent(line, where)
          if (event.type === 'ERROR') {
            const {
              code = 500,
              reason = 'Unknown',
              message = 'watch ended',
            } = event.object as { code?: number; reason?: string; message?: string }
            throw new KubeError(code, reason, `${where}: ${message}`)
          }
          yield event as WatchEvent
        }
      } catch (error) {
        if (error instanceof KubeError) throw error
        throw unreachable(where, error, deadline, options.signal)
      }
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
    close: () => closing.abort(new KubeError(0, 'Closed', `client of ${server} is closed`)),
  }
}

function parseEvent(line: string, where: string): { type: string; object: unknown } {
  try {
    const event = JSON.parse(line)
    if (typeof event?.type === 'string' && typeof event.object === 'object' && event.object !== null) return event
  } catch {}
  throw new KubeError(0, 'Malformed', `${where}: a watch event is not JSON`)
}

function refused(status: number, where: string, text: string): KubeError {
  try {
    const { kind, reason, message } = JSON.parse(text) as { kind?: string; reason?: string; message?: string }
    if (kind === 'Status') return new KubeError(status, reason ?? 'Unknown', `${where}: ${message ?? `status ${status}`}`)
  } catch {}
  return new KubeError(status, 'Unknown', `${where}: status ${status}: ${text.slice(0, 200).trim()}`)
}

function unreachable(where: string, error: unknown, deadline: AbortSignal, signal?: AbortSignal): unknown {
  if (signal?.aborted) return signal.reason
  if (deadline.aborted) return new KubeError(0, 'Timeout', `${where}: no answer in time`)
  const detail = messageOf(error)
  return new KubeError(0, 'Unreachable', `${where}: ${detail}`)
}
