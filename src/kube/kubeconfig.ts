import { X509Certificate } from 'node:crypto'
import { LineCounter, parseDocument, stringify } from 'yaml'
import { isObject } from '../document/is-object.ts'
import { duplicateKey } from '../document/unique-keys.ts'
import { messageOf } from '../wire/error-message.ts'
import { KubeError } from './errors.ts'

/** A kubeconfig: clusters, users and contexts by name, and all other top-level keys. */
export interface Kubeconfig {
  clusters: Map<string, Record<string, unknown>>
  users: Map<string, Record<string, unknown>>
  contexts: Map<string, Record<string, unknown>>
  currentContext: string
  rest: Record<string, unknown>
}

/** The contents of a kubeconfig with one cluster and one user; certificates and keys are PEM. */
export interface KubeconfigParts {
  cluster: string
  user: string
  context: string
  namespace?: string
  server: string
  ca: string
  cert?: string
  key?: string
  token?: string
}

const sections = [
  ['clusters', 'cluster'],
  ['users', 'user'],
  ['contexts', 'context'],
] as const

const largest = 4 * 1024 * 1024

/** An empty kubeconfig, the start of the first merge. */
export function emptyKubeconfig(): Kubeconfig {
  return { clusters: new Map(), users: new Map(), contexts: new Map(), currentContext: '', rest: {} }
}

/** Builds a kubeconfig with one context, which is the current one. */
export function buildKubeconfig(parts: KubeconfigParts): Kubeconfig {
  const base64 = (pem: string) => Buffer.from(pem).toString('base64')
  const user: Record<string, unknown> = {}
  if (parts.cert) user['client-certificate-data'] = base64(parts.cert)
  if (parts.key) user['client-key-data'] = base64(parts.key)
  if (parts.token) user.token = parts.token
  const context: Record<string, unknown> = { cluster: parts.cluster, user: parts.user }
  if (parts.namespace) context.namespace = parts.namespace
  return {
    clusters: new Map([[parts.cluster, { server: parts.server, 'certificate-authority-data': base64(parts.ca) }]]),
    users: new Map([[parts.user, user]]),
    contexts: new Map([[parts.context, context]]),
    currentContext: parts.context,
    rest: {},
  }
}

/** Parses a kubeconfig; throws KubeError 'Malformed' with the part that is wrong. */
export function parseKubeconfig(text: string): Kubeconfig {
  const malformed = (detail: string) => new KubeError(0, 'Malformed', `kubeconfig: ${detail}`)
  if (text.length > largest) throw malformed(`larger than ${largest} bytes`)
  const lines = new LineCounter()
  const document = parseDocument(text, { logLevel: 'silent', uniqueKeys: false, lineCounter: lines })
  if (document.errors[0]) throw malformed(document.errors[0].message.split('\n')[0] ?? 'not YAML')
  const duplicate = duplicateKey(document, lines)
  if (duplicate) throw malformed(duplicate)
  let root: unknown
  try {
    root = document.toJS({ maxAliasCount: 100 }) ?? {}
  } catch (error) {
    throw malformed(messageOf(error))
  }
  if (!isObject(root)) throw malformed('the document is not a mapping')
  if (root.kind !== undefined && root.kind !== 'Config') throw malformed(`kind is "${root.kind}", not "Config"`)
  const config = emptyKubeconfig()
  for (const [section, key] of sections) {
    const list = root[section] ?? []
    if (!Array.isArray(list)) throw malformed(`"${section}" is not a list`)
    for (const entry of list) {
      const value = isObject(entry) ? (entry[key] ?? {}) : undefined
      if (!isObject(entry) || typeof entry.name !== 'string' || !isObject(value))
        throw malformed(`an entry of "${section}" has no name or no ${key}`)
      config[section].set(entry.name, value)
    }
  }
  const current = root['current-context'] ?? ''
  if (typeof current !== 'string') throw malformed('"current-context" is not text')
  config.currentContext = current
  for (const [key, value] of Object.entries(root)) if (!known.has(key)) config.rest[key] = value
  return config
}

const known = new Set(['apiVersion', 'kind', 'clusters', 'users', 'contexts', 'current-context'])

/** Formats a kubeconfig as YAML. */
export function formatKubeconfig(config: Kubeconfig): string {
  const list = (section: 'clusters' | 'users' | 'contexts', key: string) =>
    [...config[section]].map(([name, value]) => (key === 'user' ? { name, user: value } : { [key]: value, name }))
  return stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: list('clusters', 'cluster'),
      users: list('users', 'user'),
      contexts: list('contexts', 'context'),
      'current-context': config.currentContext,
      ...config.rest,
    },
    { lineWidth: 0 },
  )
}

/** The result of a merge, for reporting. */
export interface MergeResult {
  config: Kubeconfig
  /** Names that were taken by something else, and the names used instead. */
  renamed: { kind: 'cluster' | 'user' | 'context'; from: string; to: string }[]
}

/**
 * Merges `added` into `present`. A name that is taken by a different entry gets a numeric suffix or, with `overwrite`,
 * replaces the entry. A newer certificate of the same user of the same cluster does not count as different. References are
 * renamed accordingly; nothing else in `present` is changed.
 */
export function mergeKubeconfig(
  present: Kubeconfig,
  added: Kubeconfig,
  options: { overwrite?: boolean; activate?: boolean } = {},
): MergeResult {
  const config: Kubeconfig = {
    clusters: new Map(present.clusters),
    users: new Map(present.users),
    contexts: new Map(present.contexts),
    currentContext: present.currentContext,
    rest: present.rest,
  }
  const renamed: MergeResult['renamed'] = []
  let knownClusters = false
  const place = (kind: 'cluster' | 'user' | 'context', name: string, value: Record<string, unknown>): string => {
    const section = config[`${kind}s`]
    const free = (candidate: string) => {
      const there = section.get(candidate)
      if (!there || Bun.deepEquals(there, value)) return true
      // A cluster issues a new certificate for the same user at each request.
      return kind === 'user' && knownClusters && sameUser(there, value)
    }
    let to = name
    for (let number = 1; !options.overwrite && !free(to); number++) to = `${name}-${number}`
    if (to !== name) renamed.push({ kind, from: name, to })
    section.set(to, value)
    return to
  }
  const clusters = new Map([...added.clusters].map(([name, value]) => [name, place('cluster', name, value)]))
  knownClusters = [...added.clusters].every(([name, value]) => Bun.deepEquals(present.clusters.get(clusters.get(name) ?? name), value))
  const users = new Map([...added.users].map(([name, value]) => [name, place('user', name, value)]))
  for (const [name, value] of added.contexts) {
    const cluster = clusters.get(String(value.cluster)) ?? value.cluster
    const user = users.get(String(value.user)) ?? value.user
    const to = place('context', name, { ...value, cluster, user })
    if (name === added.currentContext && (options.activate ?? true)) config.currentContext = to
  }
  return { config, renamed }
}

/** Whether two users differ only in the validity of their certificates: subject and issuer are the same. */
function sameUser(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  const identity = (user: Record<string, unknown>) => {
    const { 'client-certificate-data': data, ...rest } = user
    if (typeof data !== 'string' || typeof rest['client-key-data'] !== 'string' || Object.keys(rest).length !== 1) return undefined
    try {
      const { subject, issuer } = new X509Certificate(Buffer.from(data, 'base64'))
      return `${issuer}\n\n${subject}`
    } catch {
      return undefined // not a certificate: its owner is unknown
    }
  }
  const one = identity(a)
  return one !== undefined && one === identity(b)
}

/** Removes a context, together with the cluster and the user that no other context references. */
export function removeContext(present: Kubeconfig, name: string): Kubeconfig {
  const contexts = new Map(present.contexts)
  const gone = contexts.get(name)
  contexts.delete(name)
  const used = (key: 'cluster' | 'user', value: unknown) => [...contexts.values()].some((context) => context[key] === value)
  const without = (section: Map<string, Record<string, unknown>>, key: 'cluster' | 'user') =>
    new Map([...section].filter(([entry]) => !gone || entry !== gone[key] || used(key, entry)))
  return {
    ...present,
    contexts,
    clusters: without(present.clusters, 'cluster'),
    users: without(present.users, 'user'),
    currentContext: present.currentContext === name ? '' : present.currentContext,
  }
}

/** How to reach the cluster of a context (default: the current one); throws KubeError when the kubeconfig is incomplete. */
export function accessOf(
  config: Kubeconfig,
  name: string = config.currentContext,
): { server: string; ca: string; cert?: string; key?: string; token?: string } {
  const context = config.contexts.get(name)
  if (!context) throw new KubeError(0, 'Malformed', `kubeconfig: context "${name}" does not exist`)
  const cluster = config.clusters.get(String(context.cluster))
  const user = config.users.get(String(context.user))
  if (!cluster || !user) throw new KubeError(0, 'Malformed', `kubeconfig: cluster or user of context "${name}" does not exist`)
  const pem = (value: unknown) => (typeof value === 'string' ? Buffer.from(value, 'base64').toString() : undefined)
  const ca = pem(cluster['certificate-authority-data'])
  if (typeof cluster.server !== 'string' || !ca)
    throw new KubeError(0, 'Malformed', `kubeconfig: cluster "${context.cluster}" has no server or no certificate authority`)
  const cert = pem(user['client-certificate-data'])
  const key = pem(user['client-key-data'])
  return {
    server: cluster.server,
    ca,
    ...(cert && { cert }),
    ...(key && { key }),
    ...(typeof user.token === 'string' && { token: user.token }),
  }
}
