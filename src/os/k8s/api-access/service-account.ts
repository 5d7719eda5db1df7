/** A ServiceAccount of talos.dev: an object by which pods of its namespace request credentials for the machine API. */
import type { KubeKind } from '../../../kube/client.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { fromBase64, issuedBy, matches, parseCertificate } from '../../../pki/certificate.ts'
import { allRoles } from '../../../wire/x509/roles.ts'
import { formatClientConfig, newClientConfig } from '../../config/public.ts'
import { machineApiService } from '../../secrets/public.ts'

/** The kind; its definition is a bootstrap manifest. */
export const serviceAccountKind = {
  apiVersion: 'talos.dev/v1alpha1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
} as const satisfies KubeKind

/** The parts of a ServiceAccount that matter here, bounded whatever is in the object. */
export interface Account {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** Different roles; one more than there are is enough to find one that does not exist. Undefined when they are missing. */
  readonly roles: readonly string[] | undefined
  readonly failureReason: string | undefined
}

/** What the configuration allows, and the authority that signs. */
export interface Policy {
  /** Base64 of PEM. */
  readonly authority: { readonly crt: string; readonly key: string }
  readonly roles: readonly string[]
  readonly namespaces: readonly string[]
}

/** Why an account gets no credentials: the reason of its event, and a sentence. */
export interface Refusal {
  readonly reason: 'ErrResourceExists' | 'ErrRolesNotFound' | 'ErrNamespaceNotAllowed' | 'ErrRolesNotAllowed'
  readonly message: string
}

const hour = 3_600_000
const lifetime = 6 * hour
const renewBefore = hour
const contextName = 'default'
/** The key of the Secret's data. */
export const secretKey = 'config'
const endpoint = `${machineApiService.name}.${machineApiService.namespace}`
const longestShown = 64
const crtLine = /^ +crt: ([A-Za-z0-9+/]+=*)$/m
const keyLine = /^ +key: ([A-Za-z0-9+/]+=*)$/m

/** Reads an object of the kind. */
export function accountOf({ metadata, spec, status }: KubeObject): Account {
  const { roles } = (spec ?? {}) as { roles?: unknown }
  const { failureReason } = (status ?? {}) as { failureReason?: unknown }
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    roles: Array.isArray(roles) ? [...new Set(roles.map(String))].slice(0, allRoles.length + 1) : undefined,
    failureReason: typeof failureReason === 'string' ? failureReason : undefined,
  }
}

/** Why this account may have no credentials, given the Secret of its name; undefined when it may. */
export function refusalOf(account: Account, secret: KubeObject | undefined, policy: Policy): Refusal | undefined {
  const { namespace, name, roles } = account
  if (secret && !belongsTo(secret, account))
    return { reason: 'ErrResourceExists', message: `the Secret "${name}" belongs to others: rename one of the two` }
  // Without roles a certificate would open nothing: the next level of the API refuses it as well.
  if (!roles?.length) return { reason: 'ErrRolesNotFound', message: 'spec.roles names no role' }
  if (!policy.namespaces.includes(namespace))
    return {
      reason: 'ErrNamespaceNotAllowed',
      message: `namespace "${namespace}" is not in machine.features.kubernetesTalosAPIAccess.allowedKubernetesNamespaces`,
    }
  const forbidden = roles.find((role) => !policy.roles.includes(role))
  if (forbidden === undefined) return undefined
  return {
    reason: 'ErrRolesNotAllowed',
    message: `role ${JSON.stringify(forbidden.slice(0, longestShown))} is not in machine.features.kubernetesTalosAPIAccess.allowedRoles`,
  }
}

/** Whether a Secret's client configuration is as this policy would make it and valid for long enough; otherwise it is made again. */
export function isCurrent(config: string, roles: readonly string[], { authority }: Policy, now: Date): boolean {
  const crt = crtLine.exec(config)?.[1] ?? ''
  const key = keyLine.exec(config)?.[1] ?? ''
  const context = { endpoints: [endpoint], ca: authority.crt, crt, key }
  // Everything but the certificate and its key is compared as text: nothing of a Secret that others may write is interpreted.
  if (config !== formatClientConfig({ context: contextName, contexts: { [contextName]: context } })) return false
  try {
    const pair = { crt: fromBase64(crt), key: fromBase64(key) }
    const certificate = parseCertificate(pair.crt)
    const left = certificate.notAfter.getTime() - now.getTime()
    const same = sorted(certificate.subject.organizations ?? []) === sorted(roles)
    return (
      left > renewBefore && left <= lifetime && same && issuedBy(certificate, parseCertificate(fromBase64(authority.crt))) && matches(pair)
    )
  } catch {
    return false // not a certificate, or not a key
  }
}

/** A client configuration with these roles. */
export function newConfig(roles: readonly string[], { authority }: Policy, now: Date): string {
  return formatClientConfig(
    newClientConfig(authority, { clusterName: contextName, endpoints: [endpoint], roles: [...roles], lifetime, now }),
  )
}

/** The Secret of an account; garbage collection deletes it together with the account. */
export function secretOf({ namespace, name, uid }: Account, config: string): KubeObject {
  const { apiVersion, kind } = serviceAccountKind
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, ownerReferences: [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }] },
    data: { [secretKey]: Buffer.from(config).toString('base64') },
  }
}

/** Whether the account is the controller of a Secret. */
function belongsTo({ metadata }: KubeObject, { uid }: Account): boolean {
  return (metadata.ownerReferences ?? []).some((owner) => owner.controller === true && owner.uid === uid)
}

/** Whether a Secret belongs to an account of this name that was deleted: garbage collection is about to delete it too. */
export function isLeftOver({ metadata }: KubeObject, { name, uid }: Account): boolean {
  const { apiVersion, kind } = serviceAccountKind
  return (metadata.ownerReferences ?? []).some(
    (owner) =>
      owner.controller === true && owner.apiVersion === apiVersion && owner.kind === kind && owner.name === name && owner.uid !== uid,
  )
}

function sorted(roles: readonly string[]): string {
  return [...roles].sort().join(' ')
}
