/** Who may read which resources. There are no writes from outside; unknown types are refused like forbidden ones. */
import type { ResourceType } from '../../cosi/resource.ts'
import type { Context } from './method.ts'

/** A read request. */
export interface ResourceRequest {
  /** Undefined for an undeclared type. */
  readonly type: ResourceType | undefined
  readonly namespace: string
  /** Absent when all resources of a type are requested. */
  readonly id?: string
}

/** The reason why a read is refused; undefined allows it. */
export type ResourceAccess = (request: ResourceRequest, context: Context) => string | undefined

/** The rule of the machine API: sensitive types are for administrators. */
export const roleAccess: ResourceAccess = ({ type, namespace }, { roles, store }) => {
  if (!type) return 'unknown resource type'
  if (!knownNamespace(store, namespace)) return `unknown namespace "${namespace}"`
  if (type.sensitive && !roles.has('os:admin')) return 'not authorized: the resource is sensitive, only os:admin may read it'
  return undefined
}

/** Allows only the given types, or one id of a type. */
export function onlyAccess(allowed: readonly { type: string; namespace: string; id?: string }[]): ResourceAccess {
  return ({ type, namespace, id }) =>
    allowed.some((rule) => rule.type === type?.type && rule.namespace === namespace && (rule.id === undefined || rule.id === id))
      ? undefined
      : 'not authorized'
}

/** What apid may read: its own certificates, where it listens, and the node's addresses. */
export const apidAccess = onlyAccess([
  { type: 'ApiCertificates.secrets.talos.dev', namespace: 'secrets', id: 'api' },
  { type: 'APIServiceConfigs.runtime.talos.dev', namespace: 'runtime', id: 'api' },
  { type: 'NodeAddresses.net.talos.dev', namespace: 'network' },
])

/** What trustd may read: its own certificate, its authority and token, the keys it seals with, and the names in use. */
export const trustdAccess = onlyAccess([
  { type: 'TrustdCertificates.secrets.talos.dev', namespace: 'secrets', id: 'trustd' },
  { type: 'OSRootSecrets.secrets.talos.dev', namespace: 'secrets', id: 'os' },
  { type: 'SiblingKeys.secrets.ichor.dev', namespace: 'secrets', id: 'siblings' },
  { type: 'Members.cluster.talos.dev', namespace: 'cluster' },
])

/** What metricsd may read: the certificate of the machine API, which its endpoint has too. */
export const metricsdAccess = onlyAccess([{ type: 'ApiCertificates.secrets.talos.dev', namespace: 'secrets', id: 'api' }])

function knownNamespace(store: Context['store'], namespace: string): boolean {
  const declared = store.type('Namespaces.meta.cosi.dev')
  if (declared && store.list(declared).length > 0) return store.get(declared, namespace) !== undefined
  return true
}
