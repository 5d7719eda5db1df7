import { systemClock } from '../../cosi/clock.ts'
import type { Logger } from '../../cosi/log.ts'
import { core, type KubeClient } from '../../kube/client.ts'
import { KubeError } from '../../kube/errors.ts'
import { describeObject, type KubeObject } from '../../kube/object.ts'
import { pause } from '../../timing/pause.ts'
import { systemNamespace } from './manifests/objects.ts'

/** The field manager of the applied objects. */
export const fieldManager = 'talos'

/** The inventory of what was applied. */
export const inventoryName = 'talos-bootstrap-manifests-inventory'

/** Manifests by id, applied in the order of the ids. */
export type Manifests = readonly { id: string; objects: readonly KubeObject[] }[]

/** Retry interval after a temporary failure, in milliseconds. */
const retryDelay = 200

/**
 * Applies every object in order; objects whose namespace or kind comes later are applied once more at the end. Then lists all of
 * them in the inventory. Fields that others have changed meanwhile are left alone, which is logged. Throws the first permanent
 * error after everything has been tried.
 */
export async function applyManifests(
  client: KubeClient,
  manifests: Manifests,
  { log, signal }: { log: Logger; signal: AbortSignal },
): Promise<void> {
  const failures: unknown[] = []
  const early: { id: string; object: KubeObject }[] = []
  for (const { id, objects } of manifests) {
    for (const object of sorted(objects)) {
      try {
        if (!(await applyObject(client, object, log, signal, false))) early.push({ id, object })
      } catch (error) {
        if (signal.aborted) throw signal.reason
        log.warn('apply object failed', { manifest: id, object: describeObject(object), error })
        failures.push(error)
      }
    }
    log.debug('manifest applied', { manifest: id })
  }
  for (const { id, object } of early) {
    try {
      await applyObject(client, object, log, signal, true)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      log.warn('apply object failed', { manifest: id, object: describeObject(object), error })
      failures.push(error)
    }
  }
  await client.apply(core.configMap, inventory(manifests), { fieldManager }, { signal })
  if (failures.length > 0) throw failures[0]
}

/** Resolves when the API server is ready for all clients: its own roles and the system's namespace exist. */
export async function apiReady(client: KubeClient, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await client.request('GET', '/readyz', { signal, timeout: 5000 })
      await client.get(core.namespace, systemNamespace, undefined, { signal, timeout: 5000 })
      return
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!(error instanceof KubeError)) throw error
      await pause(retryDelay, signal)
    }
  }
}

/** Returns whether it was applied. Waits for a missing namespace or kind only if `wait` is set. */
async function applyObject(client: KubeClient, object: KubeObject, log: Logger, signal: AbortSignal, wait: boolean): Promise<boolean> {
  const end = systemClock.deadline(30_000)
  for (;;) {
    try {
      const kind = await client.kind(object.apiVersion, object.kind, { signal })
      const placed =
        kind.namespaced && !object.metadata.namespace ? { ...object, metadata: { ...object.metadata, namespace: 'default' } } : object
      await client.apply(kind, placed, { fieldManager, force: false }, { signal })
      return true
    } catch (error) {
      if (signal.aborted || !(error instanceof KubeError)) throw error
      if (error.status === 409 && error.reason === 'Conflict') {
        log.info('object changed by others, left alone', { object: describeObject(object), error })
        return true
      }
      if (error.status === 404 && !wait) return false
      if (!passing(error) || end.over) throw error
      await pause(retryDelay, signal)
    }
  }
}

/** Whether a retry may succeed: the server is starting, or a namespace or kind is about to appear. */
function passing({ status, reason }: KubeError): boolean {
  return status === 0 ? reason !== 'Malformed' : status === 404 || status === 403 || status === 429 || status >= 500
}

const order = ['Namespace', 'CustomResourceDefinition', 'ServiceAccount', 'ClusterRole', 'ClusterRoleBinding']

/** Objects that others depend on come first. */
function sorted(objects: readonly KubeObject[]): KubeObject[] {
  const rank = ({ kind }: KubeObject) => (order.includes(kind) ? order.indexOf(kind) : order.length)
  return [...objects].sort((a, b) => rank(a) - rank(b))
}

function inventory(manifests: Manifests): KubeObject {
  const data: Record<string, string> = {}
  for (const { objects } of manifests)
    for (const { apiVersion, kind, metadata } of objects) {
      const group = apiVersion.includes('/') ? apiVersion.split('/')[0] : ''
      const name = (metadata.name ?? '').replaceAll(':', '__')
      data[`${metadata.namespace ?? ''}_${name}_${group}_${kind}`] = ''
    }
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: inventoryName,
      namespace: systemNamespace,
      labels: { 'cli-utils.sigs.k8s.io/inventory-id': inventoryName },
    },
    data,
  }
}
