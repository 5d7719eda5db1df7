/** Who may read which resources. Nobody writes from outside; unknown kinds are refused like forbidden ones. */
import type { ResourceType } from '../../cosi/resource.ts'
import type { Context } from './method.ts'

/** What a reader asks for. */
export interface ResourceRequest {
  /** Undefined for a kind nobody declared. */
  readonly type: ResourceType | undefined
  readonly namespace: string
  /** Absent when all of a kind are asked for. */
  readonly id?: string
}

/** Says why a read is refused; undefined lets it pass. */
export type ResourceAccess = (request: ResourceRequest, context: Context) => string | undefined

/** The rule of the machine API: sensitive kinds are for administrators. */
export const roleAccess: ResourceAccess = ({ type, namespace }, { roles, store }) => {
  if (!type) return 'unknown resource type'
  if (!knownNamespace(store, namespace)) return `unknown namespace "${namespace}"`
  if (type.sensitive && !roles.has('os:admin')) return 'not authorized: the resource is sensitive, only os:admin may read it'
  return undefined
}

/** A rule that lets pass the named kinds only, or of a kind only one id. */
export function onlyAccess(allowed: readonly { type: string; namespace: string; id?: string }[]): ResourceAccess {
  return ({ type, namespace, id }) =>
    allowed.some((rule) => rule.type === type?.type && rule.namespace === namespace && (rule.id === undefined || rule.id === id))
      ? undefined
      : 'not authorized'
}

/** What apid may read: its own certificates and the node's addresses. */
export const apidAccess = onlyAccess([
  { type: 'ApiCertificates.secrets.talos.dev', namespace: 'secrets', id: 'api' },
  { type: 'NodeAddresses.net.talos.dev', namespace: 'network' },
])

/** What trustd may read: its own certificate, the authority and token it answers for, and whose names are taken. */
export const trustdAccess = onlyAccess([
  { type: 'TrustdCertificates.secrets.talos.dev', namespace: 'secrets', id: 'trustd' },
  { type: 'OSRootSecrets.secrets.talos.dev', namespace: 'secrets', id: 'os' },
  { type: 'Members.cluster.talos.dev', namespace: 'cluster' },
])

function knownNamespace(store: Context['store'], namespace: string): boolean {
  const declared = store.type('Namespaces.meta.cosi.dev')
  if (declared && store.list(declared).length > 0) return store.get(declared, namespace) !== undefined
  return true
}
